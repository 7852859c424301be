import json
from importlib.resources import files

import jsonschema
import pytest

from gpustow.telemetry.facts import Check, Facts
from gpustow.telemetry.http.message import Request, Response
from gpustow.telemetry.telemetry import Telemetry
from tests.telemetry.samples import NOW, facts, hold
from tests.telemetry.test_exposition import Source

PATHS = ("/", "/metrics", "/livez", "/readyz", "/api/v1/node")
BAD = Facts(NOW, (Check("configuration"), Check("plugin:nvidia.com/gpu", "it waits for kubelet")))


def ask(target: str, known: Facts | None = None, method: str = "GET") -> Response:
    return Telemetry(Source(known or facts("t4-4")))._endpoints.answer(Request(method, target))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_each_path_answers(path: str, method: str) -> None:
    assert ask(path, method=method).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_allowed(path: str, method: str) -> None:
    response = ask(path, method=method)
    assert response.status == 405
    assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/index.html",
        "/healthz",
        "/metrics/",
        "/api/v1",
        "/api/v1/node/",
        "/%6detrics",
        "//metrics",
        "/../metrics",
        "*",
        "x",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths_are_not_found(path: str, method: str) -> None:
    assert ask(path, method=method).status == 404


def test_a_process_that_answers_is_alive_whatever_else_is_wrong() -> None:
    assert ask("/livez", BAD).body == b"ok\n"
    assert ask("/livez?verbose", BAD).body == b"[+]process ok\nlivez check passed\n"


def test_readiness_is_its_checks() -> None:
    assert ask("/readyz").body == b"ok\n"
    assert ask("/readyz?verbose").body == b"[+]configuration ok\n[+]node ok\nreadyz check passed\n"


def test_a_daemon_that_is_not_ready_says_why_whether_asked_or_not() -> None:
    for target in ("/readyz", "/readyz?verbose"):
        response = ask(target, BAD)
        assert response.status == 503
        assert response.body == (
            b"[+]configuration ok\n[-]plugin:nvidia.com/gpu failed: it waits for kubelet\nreadyz check failed\n"
        )


def test_a_check_that_is_excluded_does_not_count_and_is_still_told() -> None:
    assert ask("/readyz?exclude=plugin:nvidia.com/gpu", BAD).body == b"ok\n"
    assert ask("/readyz?verbose&exclude=node&exclude=plugin:nvidia.com/gpu", BAD).body == (
        b"[+]configuration ok\n[+]plugin:nvidia.com/gpu excluded: it waits for kubelet\n"
        b"there is no check 'node' to exclude\nreadyz check passed\n"
    )


def test_to_exclude_one_check_does_not_pass_another() -> None:
    response = ask("/readyz?exclude=configuration", BAD)
    assert response.status == 503
    assert b"[+]configuration excluded: ok\n[-]plugin:nvidia.com/gpu failed" in response.body


def test_the_status_is_json_that_the_schema_allows() -> None:
    response = ask("/api/v1/node", hold(facts(), 0, pod="train"))
    assert response.content_type == "application/json"
    told = json.loads(response.body)
    jsonschema.validate(told, json.loads((files("gpustow.telemetry") / "node-status.schema.json").read_text("utf-8")))
    assert "train" in response.body.decode()


def test_metrics_are_in_the_form_that_is_accepted() -> None:
    telemetry = Telemetry(Source(facts("t4-4")))
    for accept, expected in (
        ("", "text/plain"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics"),
    ):
        response = telemetry._endpoints.answer(Request("GET", "/metrics", {"accept": accept}))
        assert response.content_type.startswith(expected)
        assert b"gpustow_ready 1" in response.body
