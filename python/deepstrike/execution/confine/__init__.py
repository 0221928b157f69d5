"""The launcher of the sandbox: a process that confines itself and then becomes the program.

It runs as `python -I -S`, so nothing here imports more than the standard library. The host imports `policy` alone.
"""
