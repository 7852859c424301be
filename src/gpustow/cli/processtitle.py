"""The name by which the daemon's process is found.

v0.20.0's config manager sends its signal to the process whose argv[0] is exactly `nvidia-device-plugin`; that of a
Python program is the interpreter's. Who is found is signalled, so the signals must be in hand before this is called.

Limits: the words after argv[0] are gone from `ps` with it. The log's first lines tell the flags that were given.
"""

from setproctitle import setproctitle


def be_called(program: str) -> None:
    """From now on this process's argv[0] is `program`, letter for letter; and so is its command name, cut to 15."""
    setproctitle(program)
