"""Gemini's own wire."""
