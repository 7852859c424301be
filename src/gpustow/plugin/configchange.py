"""What a reload changes, in words: each setting that has another value than before, and nothing of all the others.

Settings are compared by what is in force, not by the file: a file with other comments changes nothing. That a setting
has the same value from another source (the file says now what the environment said) is no change either.
"""

from gpustow.config import LoadedConfig
from gpustow.config.effective import EffectiveValue, effective, written

SAME = "the configuration is the same"


def change_lines(before: LoadedConfig, after: LoadedConfig) -> tuple[str, ...]:
    """One line for each setting that differs, `changed: name: old -> new (from its source)`; else that none does.

    A setting that stands in the file or the environment alone, and is not given, has the value `not set`.
    """
    old = {value.name: value for value in effective(before)}
    new = {value.name: value for value in effective(after)}
    lines = [_line(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))]
    return tuple(filter(None, lines)) or (SAME,)


def _line(name: str, old: EffectiveValue | None, new: EffectiveValue | None) -> str:
    texts = ["not set" if value is None else written(value.value) for value in (old, new)]
    if texts[0] == texts[1]:
        return ""
    origin = "" if new is None else f" (from the {new.origin.value})"
    return f"changed: {name}: {' -> '.join(texts)}{origin}"
