"""The status page: one HTML file that draws what `/api/v1/node` says, and asks again every few seconds.

It is whole in itself: the file `status-page.html` beside this module has its style and its script inside, and loads
nothing else from anywhere. The policy that goes with it (Content-Security-Policy) holds it to that: only the style and
the script with the very bytes that were shipped are obeyed, and only this daemon is asked. Names of pods and reasons
come from elsewhere and become text alone; if one ever became markup, no script in it would run.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from gpustow.telemetry.http.message import Response

_FILE = "status-page.html"


@cache
def status_page() -> Response:
    """The page as it is answered at `/`."""
    text = (files("gpustow.telemetry") / _FILE).read_text("utf-8")
    return Response(
        200,
        text.encode(),
        "text/html; charset=utf-8",
        {
            "Content-Security-Policy": content_security_policy(text),
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )


def content_security_policy(text: str) -> str:
    """What a page may do: obey the style and script that are in it, ask where it came from, and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(text, 'script')}",
            f"style-src {_hashes(text, 'style')}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hashes(text: str, tag: str) -> str:
    bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(body.encode()).digest()).decode()}'" for body in bodies)
