"""Signals for the supervisor; apart from it, so that it also runs where signals are somebody else's."""

import asyncio
import signal

from gpustow.plugin.supervisor import Supervisor

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


async def run_with_signals(supervisor: Supervisor) -> None:
    """Runs the supervisor; SIGHUP reloads it, SIGTERM, SIGINT and SIGQUIT end it. Raises what it raises.

    Afterwards the signals do again what they did before.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGHUP, *STOP_SIGNALS)
    before = [signal.getsignal(number) for number in numbers]
    loop.add_signal_handler(signal.SIGHUP, supervisor.reload)
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, supervisor.stop)
    try:
        await supervisor.run()
    finally:
        for number, handler in zip(numbers, before, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler or signal.SIG_DFL)
