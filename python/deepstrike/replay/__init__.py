"""Recorded sessions, read again: lived through anew, compared, told."""
