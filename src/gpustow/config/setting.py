"""What a setting is: its names in each place where it can be given, its kind, its default, and what it may be."""

import re
from dataclasses import dataclass
from enum import Enum

from gpustow.config.duration import format_duration


class Kind(Enum):
    """What the value of a setting is. A duration is in nanoseconds."""

    TEXT = "text"
    BOOLEAN = "boolean"
    TEXTS = "list"
    INTEGERS = "list of numbers"
    DURATION = "duration"


Value = str | bool | int | tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FormerNames:
    """The names that a setting had while it was proposed, in each place: flag without dashes, variable, key."""

    flag: str
    env: str
    key: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `flag` and `aliases` are without dashes; of `envs` the first that is set wins.

    `key` is the path in the file, empty if the file cannot set it. `former` names are taken with a notice. `field` is
    its name in `Config`, where that is not the flag's. `allowed` are the words that can be chosen (each item's, for a
    list), `whole` the values that it may have as a whole, `least` how many items a list needs, `pattern` the regular
    expression that a text matches as a whole; where they are empty anything may be. `refusal` is what v0.20.0 says of
    something else.
    """

    flag: str
    kind: Kind
    default: Value
    help: str
    key: str = ""
    aliases: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    former: "FormerNames | None" = None
    field: str = ""
    allowed: tuple[str, ...] = ()
    whole: tuple[Value, ...] = ()
    least: int = 0
    pattern: str = ""
    refusal: str = "invalid value"

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the flag, without dashes."""
        return (self.flag, *self.aliases, *([self.former.flag] if self.former else []))

    @property
    def attribute(self) -> str:
        """Its name in `Config`."""
        return self.field or self.flag.replace("-", "_")

    def check(self, value: Value) -> None:
        """Raises ValueError if the setting cannot have this value."""
        items = value if isinstance(value, tuple) else (value,)
        for item in items:
            if self.allowed and item not in self.allowed:
                raise ValueError(f"{self.refusal}: {item} (choose from {', '.join(self.allowed)})")
        if self.whole and value not in self.whole:
            raise ValueError(f"{self.refusal} [{' '.join(str(item) for item in items)}]")
        if self.pattern and not re.fullmatch(self.pattern, str(value)):
            raise ValueError(f"{self.refusal}: {value!r}")
        if len(items) < self.least:
            raise ValueError(f"{self.refusal}: there is none (choose from {', '.join(self.allowed)})")

    def shown(self, value: Value) -> str:
        """A value as it would be written in the file."""
        if isinstance(value, tuple):
            return f"[{', '.join(str(item) for item in value)}]"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.kind is Kind.DURATION:
            return format_duration(int(value))
        return str(value) or '""'
