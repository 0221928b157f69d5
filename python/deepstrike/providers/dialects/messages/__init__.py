"""Messages: Anthropic's wire, which others offer too."""
