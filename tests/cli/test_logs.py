import io
import json
import logging
from collections.abc import Iterator

import pytest

from gpustow.cli.logs import LogFormat, LogLevel, set_up_logs


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def logged(form: LogFormat, level: LogLevel = LogLevel.INFO) -> io.StringIO:
    stream = io.StringIO()
    set_up_logs(form, level, stream)
    return stream


def test_text_lines_have_time_level_and_place() -> None:
    stream = logged(LogFormat.TEXT)
    record = logging.makeLogRecord(
        {"created": 0.25, "name": "gpustow.x", "levelname": "INFO", "levelno": 20, "msg": "a\nb"}
    )
    logging.getLogger().handle(record)
    assert stream.getvalue() == "1970-01-01T00:00:00.250Z INFO gpustow.x: a\n  b\n"


def test_json_lines_have_the_same_and_what_the_record_carries() -> None:
    stream = logged(LogFormat.JSON)
    logging.getLogger("gpustow.x").warning("%s!", "hé", extra={"resource": "nvidia.com/gpu", "odd": {1}})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "gpustow.x",
        "message": "hé!",
        "resource": "nvidia.com/gpu",
        "odd": "{1}",
    }


@pytest.mark.parametrize("form", LogFormat)
def test_a_traceback_stays_with_its_record(form: LogFormat) -> None:
    stream = logged(form)
    try:
        int("x")
    except ValueError:
        logging.getLogger("gpustow.x").exception("failed")
    assert "ValueError: invalid literal" in stream.getvalue()
    if form is LogFormat.JSON:
        assert "ValueError: invalid literal" in json.loads(stream.getvalue())["traceback"]


def test_lines_below_the_level_are_not_shown() -> None:
    stream = logged(LogFormat.TEXT, LogLevel.ERROR)
    logging.getLogger("gpustow.x").warning("quiet")
    assert stream.getvalue() == ""
