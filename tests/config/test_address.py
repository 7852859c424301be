import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import load_config
from gpustow.config.address import split_address
from gpustow.errors import ConfigError


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (":9402", None, 9402),
        ("127.0.0.1:9402", "127.0.0.1", 9402),
        ("[::1]:0", "::1", 0),
        ("localhost:65535", "localhost", 65535),
    ],
)
def test_host_and_port_of_an_address(address: str, host: str | None, port: int) -> None:
    assert split_address(address) == (host, port)


@given(st.integers(0, 65535), st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_every_port_and_every_ip_address_is_one(port: int, ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    host = str(ip) if ip.version == 4 else f"[{ip}]"
    assert split_address(f"{host}:{port}") == (str(ip), port)


@pytest.mark.parametrize("address", ["", "9402", "localhost", ":65536", ":-1", "::1:9402x", "a b:1", ":", "http://a:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        split_address(address)


def test_nothing_listens_unless_it_is_asked_for() -> None:
    assert load_config({}, {}).config.metrics_address == ""
    assert load_config({}, {"GPUSTOW_METRICS_ADDRESS": ""}).config.metrics_address == ""


def test_flag_environment_and_file_give_the_address() -> None:
    assert load_config({"metrics-address": ":1"}, {"GPUSTOW_METRICS_ADDRESS": ":2"}).config.metrics_address == ":1"
    assert load_config({}, {"GPUSTOW_METRICS_ADDRESS": ":2"}).config.metrics_address == ":2"
    text = "version: v1\ntelemetry: {address: ':3'}\n"
    assert load_config({"config-file": "f"}, {}, lambda _path: text).config.metrics_address == ":3"


def test_a_wrong_address_is_refused_with_what_it_should_be() -> None:
    with pytest.raises(ConfigError, match=r"metrics-address: not HOST:PORT .*: '9402'"):
        load_config({"metrics-address": "9402"}, {})
