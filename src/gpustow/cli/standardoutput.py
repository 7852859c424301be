"""The data of a command on its way to stdout: all of it at once, and a clear end where it cannot be written.

A reader that has seen enough, such as `head`, is no error of anybody: the command ends in silence, with the code that a
shell gives a program that SIGPIPE ended. A full disk is told in one line. Without the flush here, both would come up
when Python ends, as a traceback that nobody can catch.

Limits: for commands that write once. What the daemon logs goes to stderr, by itself.
"""

import os
import sys

from gpustow.errors import GpustowError

NOBODY_READS = 141
"""128 + SIGPIPE."""


def write_out(text: str) -> None:
    """Writes the text to stdout, all of it; ends the process where nobody reads, raises GpustowError if it cannot."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_the_rest()
        sys.exit(NOBODY_READS)
    except OSError as error:
        _drop_the_rest()
        raise GpustowError(f"the output cannot be written: {error.strerror}") from error


def _drop_the_rest() -> None:
    """Sends what is still in the buffer nowhere, since Python will try to write it again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
