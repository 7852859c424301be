import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from gpustow.telemetry.http.message import Request
from gpustow.telemetry.http.server import HttpServer
from gpustow.telemetry.statuspage import content_security_policy, status_page
from gpustow.telemetry.telemetry import Telemetry
from tests.telemetry.client import fetch
from tests.telemetry.samples import facts
from tests.telemetry.test_exposition import Source

VOID = {"meta", "link", "br", "hr", "img", "input"}
LOADS = ("src", "href", "srcset", "action", "data", "poster", "style")


class Markup(HTMLParser):
    """Which elements there are, whether each is closed by its own end, and what they load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: dict[tuple[str, str], str] = {}
        self.handlers: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in LOADS:
                self.loads[tag, value or ""] = name
            if name.startswith("on"):
                self.handlers.append(name)
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text() -> str:
    return status_page().body.decode()


@pytest.fixture(scope="module")
def markup(text: str) -> Markup:
    return Markup(text)


def test_it_is_well_formed(text: str, markup: Markup) -> None:
    assert text.startswith("<!DOCTYPE html>\n")
    assert markup.open == []
    assert len(markup.ids) == len(set(markup.ids))
    assert [
        markup.tags.count(tag) for tag in ("html", "head", "body", "main", "header", "footer", "style", "script")
    ] == [1] * 8


def test_it_loads_nothing_from_anywhere(text: str, markup: Markup) -> None:
    assert not re.search(r"https?:|url\(|import\b|XMLHttpRequest|WebSocket|EventSource|sendBeacon", text)
    assert re.findall(r"fetch\((.*?),", text) == ['"api/v1/node"']
    targets = {target for _, target in markup.loads}
    assert targets == {"data:,", "#main", "api/v1/node", "metrics", "readyz?verbose"}


def test_foreign_text_can_become_nothing_but_text(text: str, markup: Markup) -> None:
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser"):
        assert way not in text
    assert markup.handlers == []


def test_without_scripts_it_says_where_the_same_is_told(text: str) -> None:
    said = re.search(r"<noscript>(.*?)</noscript>", text, flags=re.DOTALL)
    assert said is not None
    assert "JavaScript" in said[1]
    assert '<a href="api/v1/node">' in said[1]


def test_its_policy_names_the_bytes_of_its_script_and_style(text: str) -> None:
    policy = dict(part.split(" ", 1) for part in content_security_policy(text).split("; "))
    for tag in ("script", "style"):
        body = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        assert policy[f"{tag}-src"] == f"'sha256-{b64encode(sha256(body.encode()).digest()).decode()}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in str(policy)


async def test_it_is_served_with_its_policy_and_never_kept() -> None:
    answer = Telemetry(Source(facts("t4-4")))._endpoints.answer
    async with HttpServer(answer, "127.0.0.1", 0) as server:
        served = await fetch(server.ports[0], "/")
    assert served.status == 200
    assert served.body == answer(Request("GET", "/")).body
    assert served.headers["content-type"] == "text/html; charset=utf-8"
    assert served.headers["cache-control"] == "no-store"
    assert served.headers["content-security-policy"] == content_security_policy(served.text)
    assert served.headers["referrer-policy"] == "no-referrer"
