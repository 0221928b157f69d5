"""Ollama's own wire."""
