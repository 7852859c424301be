"""Requests and answers as JSON lines with the Go program, from any thread, many at a time."""

import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

PATIENCE = 30.0
"""Seconds for an answer that no plugin can hold up."""
_TAIL = 4000


class RefusedError(Exception):
    """The program answered with an error; the text is its own, or kubelet's."""


class EndedError(Exception):
    """The program has ended before it answered."""


class Conversation:
    """One process of the program; what it logs goes to the file `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._ended = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self._reader = threading.Thread(target=self._read, name="device manager's answers", daemon=True)
        self._reader.start()

    @property
    def process(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ask(self, do: str, **values: object) -> Future[Any]:
        """Asks; the future has the answer, or RefusedError or EndedError."""
        answer: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            if self._ended:
                answer.set_exception(self._end())
                return answer
            self._waiting[number] = answer
            line = json.dumps({"id": number, "do": do, "with": values}) + "\n"
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
            except BrokenPipeError:  # the reader sees the end, too, and fails the future
                pass
        return answer

    def ask_now(self, do: str, **values: object) -> Any:
        """Asks and waits, for what no plugin can hold up."""
        return self.ask(do, **values).result(PATIENCE)

    def close(self, *, kill: bool = False) -> None:
        """Ends the process."""
        if kill:
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                with self._lock:
                    future = self._waiting.pop(answer["id"])
                if "error" in answer:
                    future.set_exception(RefusedError(answer["error"]))
                else:
                    future.set_result(answer.get("ok"))
        with self._lock:
            self._ended = True
            left = [*self._waiting.values()]
            self._waiting.clear()
        for future in left:
            future.set_exception(self._end())

    def _end(self) -> EndedError:
        said = self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
        return EndedError(f"the device manager's process has ended; its last words:\n{said}")
