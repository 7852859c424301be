"""A request as far as it matters here, and a response."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """Method and target as they were sent; `headers` by their names in small letters, the last of each."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def asks(self, parameter: str) -> bool:
        """Whether a parameter of the query is there, with or without a value."""
        return parameter in self._query

    def values(self, parameter: str) -> tuple[str, ...]:
        """What a parameter of the query is set to, each time that it is there."""
        return tuple(self._query.get(parameter, ()))

    @property
    def _query(self) -> Mapping[str, list[str]]:
        return parse_qs(self.target.partition("?")[2], keep_blank_values=True)


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered. `headers` come beside those that every answer has."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, status: int, text: str, headers: Mapping[str, str] | None = None) -> "Response":
        """A line or more for people."""
        return cls(status, f"{text}\n".encode(errors="backslashreplace"), headers=headers or {})
