"""Waiting for what plugins do: a condition is looked at whenever there is news, and now and then without.

News is that a plugin has connected, listed or been lost. Much that a test waits for comes without: the node's status
grows old, a registration is refused, the plugin under test changes something of its own. So a condition is looked at
every few milliseconds as well, which keeps any condition from being missed; news only makes it quicker.
"""

import asyncio
from collections.abc import Callable

LOOK_AGAIN = 0.05
"""Seconds between two looks at a condition while there is no news."""


class News:
    """Wakes those who wait."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Something has happened."""
        self._event.set()

    async def wait_until(self, condition: Callable[[], bool], patience: float) -> None:
        """Returns when the condition holds; TimeoutError after `patience` seconds."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(patience):
            while not condition():
                self._event.clear()
                look_again = loop.call_later(LOOK_AGAIN, self._event.set)
                try:
                    await self._event.wait()
                finally:
                    look_again.cancel()
