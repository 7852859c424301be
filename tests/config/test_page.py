"""The page on configuration is current, and its example does what it says."""

from pathlib import Path

from gpustow.config import SETTINGS, load_config
from gpustow.config.page import EXAMPLE, configuration_page
from gpustow.resources import build_catalog
from tests.resources.machines import gpu, node

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == configuration_page(), "python -m gpustow.config.page writes it anew"


def test_every_flag_alias_variable_and_key_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for setting in SETTINGS:
        for name in setting.names:
            assert f"`--{name}`" in page
        for word in (*setting.envs, setting.key):
            assert not word or f"`{word}`" in page


def test_the_example_of_the_page_does_what_its_comments_say() -> None:
    loaded = load_config({"config-file": "x"}, {}, lambda _: EXAMPLE)
    assert loaded.warnings == ()
    machine = node(
        gpu(0, model="NVIDIA A100-PCIE-40GB"),
        gpu(1, model="NVIDIA A100-PCIE-40GB"),
        gpu(2),
        gpu(0x80, model="NVIDIA A100-PCIE-40GB"),
    )
    catalog = build_catalog(machine, loaded.config)
    assert {resource.name: len(resource.devices) for resource in catalog.resources} == {
        "nvidia.com/a100": 1,
        "nvidia.com/a100.shared": 8,
        "nvidia.com/gpu": 1,
    }
