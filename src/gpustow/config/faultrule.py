"""How often a fault may come before a device is unfit: never mind (`ignore`), once (`fatal`), or `3 in 24h`.

The same words stand in the configuration file, in the table of XIDs and in what is shown of both.
"""

import re
from dataclasses import dataclass

from gpustow.config.duration import INFINITE, format_duration, parse_duration

NANOSECONDS = 10**9
MOST_FAULTS = 1000
"""As many are remembered for each device and kind of fault, at most."""

SAME_FAULT_SECONDS = 5.0
"""Events of one kind that come within this time of the first are one fault. An assumption: no vendor gives a number."""

RULE_PATTERN = r"^(ignore|fatal|[1-9][0-9]* in \S+)$"
"""For the JSON schema: what a rule looks like."""

_COUNTED = re.compile(r"([1-9][0-9]*) in (\S+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class FaultRule:
    """`faults` within `seconds` make a device unfit: 0 is never, 1 is at once, whatever `seconds` says."""

    faults: int
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.faults > 1:
            return f"{self.faults} in {written_seconds(self.seconds)}"
        return "fatal" if self.faults else "ignore"

    @property
    def counts(self) -> bool:
        """Whether it takes several faults."""
        return self.faults > 1


IGNORE = FaultRule(0)
FATAL = FaultRule(1)


def parse_rule(text: str) -> FaultRule:
    """The rule that `text` says. Raises ValueError."""
    if text == str(IGNORE):
        return IGNORE
    if text == str(FATAL):
        return FATAL
    match = _COUNTED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not ignore, fatal, or a number of faults in a time, such as 3 in 24h")
    faults, nanoseconds = int(match[1]), parse_duration(match[2])
    if not 1 < faults <= MOST_FAULTS:
        raise ValueError(f"{text!r}: the number of faults is 2 to {MOST_FAULTS}; one fault is written fatal")
    least = (faults - 1) * SAME_FAULT_SECONDS
    if not least * NANOSECONDS <= nanoseconds < INFINITE:
        apart, shortest = written_seconds(SAME_FAULT_SECONDS), written_seconds(least)
        raise ValueError(
            f"{text!r}: faults within {apart} are one, so the time is {shortest} or more; and not infinite"
        )
    return FaultRule(faults, nanoseconds / NANOSECONDS)


def written_seconds(seconds: float) -> str:
    """A time as it would be written in the file, as short as it can be: `24h`, `1m30s`, `0s`."""
    text = format_duration(round(seconds * NANOSECONDS))
    return re.sub(r"(?<=h)0m$", "", re.sub(r"(?<=[hm])0s$", "", text))
