"""The plugin's command line as v0.20.0 takes it, rewritten into the one form that the command library understands.

v0.20.0 parses as Go programs do, and manifests out there rely on it: one dash or two; a value after `=` or as the next
word; a boolean alone is true, and only `=` gives it another value; the first word that is no flag ends the flags, and
whatever follows is ignored. Here every flag becomes `--name=value`, but for switches such as `-help` and `-v=true`,
which become `--name` where they are on. What is ignored is told, since it may have been meant: `--fail-on-init-error
false` sets the flag to true and ends the flags.

Limits: what a value means is the configuration's business. Unknown flags are passed on as they are, for the command
library to complain about.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpustow.errors import UsageError

_ON = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_OFF = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""What Go's `strconv.ParseBool` takes."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag by its names without dashes, the first of which is the name that it goes by.

    `boolean` may stand alone. A `switch` may, too, and the command library knows it without a value only.
    """

    names: tuple[str, ...]
    boolean: bool = False
    switch: bool = False


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line in the one form, and the words that are ignored."""

    words: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def rewrite(words: Sequence[str], flags: Iterable[Flag]) -> CommandLine:
    """The command line in the one form.

    Raises UsageError if a flag lacks its value, is given by two of its names at once, or is a switch that is neither
    true nor false.
    """
    known = {name: flag for flag in flags for name in flag.names}
    rewritten: list[str] = []
    given: dict[str, str] = {}
    rest = list(words)
    while rest and _is_flag(rest[0]):
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.lstrip("-").partition("=")
        flag = known.get(name)
        if flag is None:
            rewritten.append(word)
            continue
        if flag.switch:
            rewritten += [f"--{flag.names[0]}"] if not equals or _is_on(name, value) else []
            continue
        _refuse_second_name(given, flag, name)
        if not equals:
            value = "true" if flag.boolean else _next_word(rest, name)
        rewritten.append(f"--{name}={value}")
    return CommandLine(tuple(rewritten), tuple(rest))


def tell_ignored(line: CommandLine) -> None:
    """Tells on stderr which words are ignored, and why."""
    if line.ignored:
        told = f"warning: ignored, because {line.ignored[0]!r} ends the flags: {' '.join(line.ignored)}"
        print(told, file=sys.stderr)  # noqa: T201 - as a command tells its errors


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _is_on(name: str, value: str) -> bool:
    if value in _ON or value in _OFF:
        return value in _ON
    raise UsageError(f"flag --{name} cannot be {value!r}", advice=f"Write --{name}, or --{name}=false.")


def _next_word(rest: list[str], name: str) -> str:
    if not rest:
        raise UsageError(f"flag --{name} needs a value", advice=f"Write --{name}=VALUE.")
    return rest.pop(0)


def _refuse_second_name(given: dict[str, str], flag: Flag, name: str) -> None:
    other = given.setdefault(flag.names[0], name)
    if other != name:
        raise UsageError(f"--{other} and --{name} are names of one flag", advice="Give one of them.")
