"""Walking a file with its path in hand: what is unknown is told, what is wrong is refused, both where it stands.

Keys of plain sections match whatever their case, as in v0.20.0, with a warning; the sections that v0.20.0 decodes by
hand (sharing, patterns) are exact. An unknown key is told with its path and the nearest key that is known.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gpustow.config.filekeys import nearest
from gpustow.errors import Problem


@dataclass(slots=True)
class Findings:
    """What was found in a file. `unknown` are keys with no effect, `warnings` the rest that is worth a word."""

    refused: list[Problem] = field(default_factory=list)
    unknown: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Section:
    """A value of the file at `path`, and where findings about it go."""

    node: Any
    path: str
    findings: Findings

    def keys(self) -> tuple[str, ...]:
        """The keys that stand here."""
        return tuple(self.node) if isinstance(self.node, dict) else ()

    def has(self, key: str) -> bool:
        """Whether this key stands here, with or without a value."""
        return isinstance(self.node, dict) and key in self.node

    def refuse(self, message: str) -> None:
        """What stands here cannot be used."""
        self.findings.refused.append(Problem(self.path, message))

    def warn(self, message: str) -> None:
        """What stands here has less effect than it seems."""
        self.findings.warnings.append(Problem(self.path, message))

    def is_mapping(self) -> bool:
        """Whether keys stand here; refuses what is something else."""
        if isinstance(self.node, dict):
            return True
        self.refuse(f"{self.node!r} is not a mapping")
        return False

    def child(self, key: str) -> Self:
        """What stands under `key`; None if nothing does."""
        node = self.node.get(key) if isinstance(self.node, dict) else None
        return type(self)(node, f"{self.path}.{key}" if self.path else key, self.findings)

    def mapping(self, key: str, known: Sequence[str]) -> Self:
        """The section under `key`, with its keys in the case of `known`; empty if there is none.

        Refuses what is no section.
        """
        child = self.child(key)
        if child.node is None or not child.is_mapping():
            return type(self)({}, child.path, child.findings)
        return child.folded(known)

    def items(self, key: str) -> tuple[Self, ...]:
        """The items of the list under `key`; none if nothing stands there. Refuses what is no list."""
        child = self.child(key)
        if child.node is None:
            return ()
        if not isinstance(child.node, list):
            child.refuse(f"{child.node!r} is not a list")
            return ()
        return tuple(self.item(key, at) for at in range(len(child.node)))

    def item(self, key: str, at: int) -> Self:
        """One item of the list under `key`."""
        return type(self)(self.node[key][at], f"{self.child(key).path}[{at}]", self.findings)

    def value(self, key: str) -> Any:
        """What stands under `key`; None if nothing does."""
        return self.child(key).node

    def boolean(self, key: str) -> bool | None:
        """The boolean under `key`; refuses what is something else."""
        value = self.value(key)
        if value is None or isinstance(value, bool):
            return value
        self.child(key).refuse(f"{value!r} is not true or false")
        return None

    def expect_exactly(self, known: Sequence[str]) -> None:
        """Tells of the keys that are not among `known`."""
        for key in self.keys():
            if key not in known:
                self._tell_unknown(key, known)

    def folded(self, known: Sequence[str]) -> Self:
        """The same section with keys in the case of `known`; tells of other cases and of unknown keys."""
        by_lower = {key.lower(): key for key in known}
        node: dict[str, Any] = {}
        for key, value in self.node.items():
            right = by_lower.get(key.lower())
            if right is None:
                self._tell_unknown(key, known)
                continue
            if right != key:
                self.child(key).warn(f"it is read as {right!r}; write it so")
            if right not in node or right == key:
                node[right] = value
        return type(self)(node, self.path, self.findings)

    def _tell_unknown(self, key: str, known: Sequence[str]) -> None:
        near = nearest(re.sub(r"\[\d+\]", "[]", self.path), key, known)
        if not near:
            hint = f"known here: {', '.join(known)}"
        elif near in known:
            hint = f"did you mean {near!r}?"
        else:
            hint = f"did you mean {near.replace('[]', '')!r}?"
        self.findings.unknown.append(Problem(self.child(key).path, f"unknown key, without effect; {hint}"))
