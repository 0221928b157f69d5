"""The wire formats, as pure code: bytes in, events out. Nothing here opens a socket or reads a clock."""
