from gpustow.telemetry.http.message import Request, Response


def test_a_target_is_a_path_and_a_query() -> None:
    request = Request("GET", "/readyz?verbose&x=1")
    assert request.path == "/readyz"
    assert request.asks("verbose")
    assert request.asks("x")
    assert not request.asks("y")
    assert not Request("GET", "/readyz").asks("verbose")


def test_a_parameter_may_be_set_more_than_once() -> None:
    request = Request("GET", "/readyz?exclude=node&verbose&exclude=plugin%3Anvidia.com/gpu")
    assert request.values("exclude") == ("node", "plugin:nvidia.com/gpu")
    assert request.values("verbose") == ("",)
    assert request.values("include") == ()


def test_a_text_that_is_not_unicode_can_still_be_answered() -> None:
    assert Response.text(200, "a\udcffb").body == b"a\\udcffb\n"
