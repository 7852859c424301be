"""What calls into NVML are counted: told from any thread, from the start of the daemon, whether anybody asks or not.

So this is apart from what is imported only where somebody does.
"""

import threading
from collections.abc import Iterator

from gpustow.hardware.nvml.observer import CallResult
from gpustow.telemetry import catalogue as known
from gpustow.telemetry.metric import Sample


class NvmlCounts:
    """Is told of calls into NVML (a CallObserver), from any thread, and counts them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, list[float]] = {}
        self._errors: dict[tuple[str, str], int] = {}

    def called(self, call: str, seconds: float, result: CallResult) -> None:
        """A call has ended, or has been given up."""
        with self._lock:
            seen = self._calls.setdefault(call, [0, 0.0])
            seen[0] += 1
            seen[1] += seconds
            if result is not CallResult.OK:
                key = (call, result.value)
                self._errors[key] = self._errors.get(key, 0) + 1

    def calls(self) -> dict[str, tuple[int, float]]:
        """How often each was made, and the seconds that this took."""
        with self._lock:
            return {call: (int(count), seconds) for call, (count, seconds) in self._calls.items()}

    def samples(self) -> Iterator[Sample]:
        """The errors."""
        with self._lock:
            errors = dict(self._errors)
        for labels, count in errors.items():
            yield Sample(known.NVML_ERRORS, labels, count)
