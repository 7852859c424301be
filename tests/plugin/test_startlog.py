from gpustow.config import load_config
from gpustow.plugin.startlog import config_lines, resource_lines
from gpustow.version import __version__
from tests.plugin.samples import loaded, served, with_health


def test_the_first_line_tells_what_holds_without_any_settings() -> None:
    [line] = config_lines(loaded())
    assert line == (
        f"gpustow {__version__}; config file: none (flags and environment only); migStrategy none; "
        "sharedDevicesAllocationPolicy distributed; deviceListStrategy [envvar]; deviceIDStrategy uuid"
    )


def test_what_is_not_the_default_is_told_with_what_gave_it() -> None:
    file = "flags: {plugin: {deviceIDStrategy: index}, nvidiaDriverRoot: /run/nvidia}"
    first, *others = config_lines(
        load_config(
            {"mig-strategy": "single"}, {"CONFIG_FILE": "c.yaml", "DEVICE_LIST_STRATEGY": "envvar"}, lambda _: file
        )
    )
    assert "; config file: c.yaml (sha256 " in first
    assert "; migStrategy single (from the flag); sharedDevicesAllocationPolicy distributed; " in first
    assert "; deviceListStrategy [envvar] (from the environment); deviceIDStrategy index (from the file)" in first
    assert "flags.nvidiaDriverRoot = /run/nvidia (file)" in others
    assert not any("migStrategy" in line for line in others)


def test_each_resource_is_told_with_its_devices() -> None:
    sick = with_health(served(2), _1=False)
    assert resource_lines([served(1).resource, served(2).resource, sick.resource]) == (
        "nvidia.com/gpu: 1 device on 1 GPU",
        "nvidia.com/gpu: 2 devices on 2 GPUs",
        "nvidia.com/gpu: 2 devices on 2 GPUs, 1 of them unhealthy",
    )
