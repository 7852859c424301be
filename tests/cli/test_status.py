"""`gpustow status`: most of it in this process, against a telemetry that listens in a thread."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import yaml

from gpustow.cli import main, status
from gpustow.errors import DaemonError
from gpustow.telemetry.facts import Facts
from gpustow.telemetry.picture import node_status
from gpustow.telemetry.plainjson import plain
from gpustow.telemetry.telemetry import Telemetry
from tests.cli.commands import BIN, Ended, environment, run
from tests.telemetry.daemon import daemon
from tests.telemetry.samples import NOW, facts, hold

NODE = hold(facts("t4-4", replicas=3), 1, pod="train")


class Source:
    known = NODE

    def facts(self, now: float) -> Facts:
        return replace(self.known, at=now)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    telemetry, loop, started = Telemetry(Source(), clock=lambda: NOW), asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        task = asyncio.create_task(telemetry.listen("127.0.0.1:0"))
        stop.append(task.cancel)
        while not telemetry.ports:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
        started.set()
        await asyncio.wait([task])

    stop: list[Callable[[], object]] = []
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    started.wait(30)
    yield telemetry.ports[0]
    loop.call_soon_threadsafe(stop[0])
    thread.join(30)
    loop.close()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: int) -> Callable[..., Ended]:
    def call(*words: str, address: str | None = f"127.0.0.1:{port}") -> Ended:
        monkeypatch.setattr(sys, "argv", ["gpustow", "status", *words])
        monkeypatch.delenv("GPUSTOW_METRICS_ADDRESS", raising=False)
        if address is not None:
            monkeypatch.setenv("GPUSTOW_METRICS_ADDRESS", address)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


def test_the_picture_is_drawn_of_what_the_daemon_says(call: Callable[..., Ended]) -> None:
    ended = call()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("t4-4  ready\n")
    assert "│   │ A │   │ 1 of 3" in ended.out
    assert "A default/train" in ended.out
    assert "\x1b" not in ended.out


def test_json_and_yaml_are_the_answer_itself(call: Callable[..., Ended]) -> None:
    told = json.loads(json.dumps(plain(node_status(NODE))))
    assert json.loads(call("-o", "json").out) == told
    assert yaml.safe_load(call("-o", "yaml").out) == told


def test_the_flag_is_stronger_than_the_environment(call: Callable[..., Ended], port: int) -> None:
    assert call("--address", f":{port}", address="127.0.0.1:1").code == 0


def test_colours_are_for_terminals_that_want_them(call: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in call().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in call().out


def test_where_nobody_listens_it_says_what_to_do(call: Callable[..., Ended]) -> None:
    ended = call("--address", "127.0.0.1:1")
    assert (ended.code, ended.out) == (1, "")
    assert "no status of a daemon at 127.0.0.1:1: nobody listens there" in ended.err
    assert "--metrics-address" in ended.err


def test_without_an_address_it_asks_this_machine(call: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetch(address: str) -> object:
        asked.append(address)
        return {}

    monkeypatch.setattr(status, "fetch_status", fetch)
    assert call("-o", "json", address=None).code == call("-o", "json", address="").code == 0
    assert asked == ["127.0.0.1:9402"] * 2


@pytest.mark.parametrize("words", [("--address", "nonsense"), ("--interval", "0"), ("-o", "xml")])
def test_wrong_words_end_with_2(call: Callable[..., Ended], words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert (ended.code, ended.out) == (2, "")


def test_an_answer_of_another_kind_is_told(call: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "fetch_status", lambda _address: {"at": 1})
    ended = call()
    assert ended.code == 1
    assert "the answer is not understood: version: Field required" in ended.err
    assert json.loads(call("-o", "json").out) == {"at": 1}


def test_names_cannot_act_on_the_terminal(call: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    evil = plain(node_status(hold(facts("t4-4"), 0, pod="\x1b[2J\x07evil")))
    monkeypatch.setattr(status, "fetch_status", lambda _address: evil)
    out = call().out
    assert "evil" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_watching_goes_on_over_a_daemon_that_is_away_for_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[str | DaemonError] = [DaemonError("a:1", "nobody listens there", advice="-"), "second"]

    def look() -> str:
        answer = answers.pop(0)
        if isinstance(answer, DaemonError):
            raise answer
        return answer

    assert list(islice(status._looks("first", look, 0), 2)) == ["first", "second"]
    assert capsys.readouterr().err == "no status of a daemon at a:1: nobody listens there; trying again\n"


def test_a_picture_is_drawn_over_the_last_one_only_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (status._before(drawn=True), status._before(drawn=False)) == ("\n", "")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert status._before(drawn=True).startswith("\x1b[H")


def test_watching_writes_again_and_again_until_it_is_interrupted(port: int) -> None:
    words = ["status", f"--address=127.0.0.1:{port}", "--watch", "--interval=0.1", "-o", "yaml"]
    with subprocess.Popen(
        [BIN / "gpustow", *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        begun = 0
        while begun < 3:
            begun += process.stdout.readline() == "---\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


async def test_a_whole_daemon_is_asked_from_outside(tmp_path: Path) -> None:
    text = "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n"
    async with daemon(tmp_path, "t4-4", text) as running:
        await running.ready()
        await running.admit("train", "nvidia.com/gpu", 1)
        await running.supervisor.read_usage()
        env = {"GPUSTOW_METRICS_ADDRESS": f"127.0.0.1:{running.port}"}
        ended = await asyncio.to_thread(run, "gpustow", "status", env=env)
    assert (ended.code, ended.err) == (0, "")
    assert "t4-4  ready" in ended.out
    assert "A default/train" in ended.out
    assert "Last decisions" in ended.out
