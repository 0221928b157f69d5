"""The version; the native module must carry the same one."""

__version__ = "0.3.0"
