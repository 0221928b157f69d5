"""Responses: OpenAI's wire for models that reason."""
