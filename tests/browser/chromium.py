"""A headless Chromium, driven over its DevTools protocol by a pair of pipes: no library, no port.

Only what the tests need: open a page, evaluate an expression in it, press keys, emulate a screen, take a picture.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

_SECONDS = 30.0
_SPARE = 10
"""File descriptors from here on are free of the two that Chromium wants."""

_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


def program() -> str | None:
    """The browser of this machine; None if there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Page:
    """One page of a browser. `complaints` are what the page wrote to the console, and its uncaught errors."""

    def __init__(self, to: int, of: int) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._to = to
        self._of = of
        self._numbers = count(1)
        self._pending = b""
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        self._call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, as JSON has it."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits for an expression to be true."""
        deadline = time.monotonic() + _SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"{expression} does not come true; {self.complaints}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        """A window of that size, in CSS pixels, of a reader who likes it light or dark."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def scripts(self, *, on: bool) -> None:
        """Whether the page may run scripts, from the next one that is opened on."""
        self._call("Emulation.setScriptExecutionDisabled", value=not on)

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that the page tells those who do not see it."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def picture(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _note(self, event: str, params: Mapping[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description", "an error"))
        elif event == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._of], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            data = os.read(self._of, 1 << 16)
            assert data, "the browser has ended"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


@contextmanager
def browsing(binary: str, directory: Path) -> Iterator[Page]:
    """A page of a new browser, which keeps what it has to keep in an empty directory, and ends with the context."""
    child_of, to = _pipe()
    of, child_to = _pipe()
    words = [binary, *FLAGS, f"--user-data-dir={directory}", "about:blank"]
    nowhere = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, here, there) for here, there in ((nowhere, 2), (child_of, 3), (child_to, 4))]
    process = os.posix_spawn(binary, words, {**os.environ, "HOME": str(directory)}, file_actions=actions)
    for descriptor in (nowhere, child_of, child_to):
        os.close(descriptor)
    try:
        page = Page(to, of)
        yield page
        with suppress(AssertionError):  # it ends before it answers
            page._session = None
            page._call("Browser.close")
    finally:
        os.close(to)  # a browser whose pipe is closed ends, too
        os.waitpid(process, 0)
        os.close(of)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not among the descriptors that the browser wants for its own."""
    low = os.pipe()
    high = fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, _SPARE), fcntl.fcntl(low[1], fcntl.F_DUPFD_CLOEXEC, _SPARE)
    for descriptor in low:
        os.close(descriptor)
    return high
