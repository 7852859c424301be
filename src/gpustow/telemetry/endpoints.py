"""What each path answers.

Liveness is about this process alone: that an answer comes at all is the proof. Readiness is what the daemon says of
itself, check by check, in the form that kube-apiserver has for it.
"""

import json
from collections.abc import Callable, Iterable, Mapping

from gpustow.telemetry.exposition import Exposition
from gpustow.telemetry.facts import Check
from gpustow.telemetry.http.message import Request, Response
from gpustow.telemetry.nodestatus import NodeStatus
from gpustow.telemetry.plainjson import plain
from gpustow.telemetry.statuspage import status_page

_METHODS = ("GET", "HEAD")
_ALIVE = Check("process")


class Endpoints:
    """Answers requests. `checks` are those of readiness, `status` makes the status of the node."""

    def __init__(
        self, checks: Callable[[], Iterable[Check]], exposition: Exposition, status: Callable[[], NodeStatus]
    ) -> None:
        self._checks = checks
        self._exposition = exposition
        self._status = status
        self._paths: Mapping[str, Callable[[Request], Response]] = {
            "/": lambda _request: status_page(),
            "/metrics": self._metrics,
            "/livez": lambda request: _probe("livez", [_ALIVE], request),
            "/readyz": lambda request: _probe("readyz", self._checks(), request),
            "/api/v1/node": self._node,
        }

    def answer(self, request: Request) -> Response:
        """The response to a request."""
        respond = self._paths.get(request.path)
        if respond is None:
            return Response.text(404, f"not found; there are {', '.join(self._paths)}")
        if request.method not in _METHODS:
            return Response.text(405, "only GET and HEAD", {"Allow": ", ".join(_METHODS)})
        return respond(request)

    def _metrics(self, request: Request) -> Response:
        body, content_type = self._exposition.render(request.headers.get("accept", ""))
        return Response(200, body, content_type)

    def _node(self, _request: Request) -> Response:
        text = json.dumps(plain(self._status()), separators=(",", ":"))
        return Response(200, text.encode(), "application/json")


def _probe(name: str, checks: Iterable[Check], request: Request) -> Response:
    """As kube-apiserver's: checks are told with `verbose`, or if one fails that is not excluded."""
    checks = tuple(checks)
    excluded = request.values("exclude")
    passed = all(check.passed for check in checks if check.name not in excluded)
    if passed and not request.asks("verbose"):
        return Response.text(200, "ok")
    unknown = sorted(set(excluded) - {check.name for check in checks})
    lines = [
        *(_line(check, is_excluded=check.name in excluded) for check in checks),
        *(f"there is no check {word!r} to exclude" for word in unknown),
        f"{name} check {'passed' if passed else 'failed'}",
    ]
    return Response.text(200 if passed else 503, "\n".join(lines))


def _line(check: Check, *, is_excluded: bool) -> str:
    if is_excluded:
        return f"[+]{check.name} excluded: {check.reason or 'ok'}"
    return f"[+]{check.name} ok" if check.passed else f"[-]{check.name} failed: {check.reason}"
