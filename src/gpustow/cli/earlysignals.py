"""What signals do while the daemon starts: those that stop end it well, and SIGHUP does nothing.

To process 1 of a container the kernel delivers no signal that nobody handles: a SIGTERM that comes while modules are
imported would be lost, and the pod would end by SIGKILL after its whole grace. To any other process a SIGHUP would be
deadly; and what it asks for, to read configuration and node, is about to be done. Until the supervisor takes the
signals over, nothing is served and nothing lies on disk, so there is nothing to clean up.

Limits: what comes before Python runs its first line of ours is still lost, some hundredths of a second.
"""

import os
import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def end_well_from_now_on() -> None:
    """Until others take the signals: SIGTERM, SIGINT and SIGQUIT end the process with 0, SIGHUP is ignored."""
    for number in STOP_SIGNALS:
        signal.signal(number, _end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _end(_number: int, _frame: object) -> None:
    # No exception, since it would come up inside an import and could be swallowed there.
    os._exit(0)
