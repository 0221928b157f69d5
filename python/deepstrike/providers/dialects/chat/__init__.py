"""Chat completions: the wire of OpenAI and of most other services."""
