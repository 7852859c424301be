"""Which platform a machine is, by what can be loaded and which files it has."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from gpustow.hardware.node import Platform
from gpustow.hardware.platform import is_integrated, load_error, not_found, resolve_platform

DXCORE, NVML = "libdxcore.so", "libnvidia-ml.so.1"
FILES, INTEGRATED = "files of a Tegra board", "an integrated GPU"


def loader(there: Collection[str]) -> Callable[[str], str]:
    return lambda library: "" if library in there else f"{library}: cannot open shared object file"


@pytest.mark.parametrize(
    ("strategy", "there", "platform"),
    [
        ("auto", {DXCORE, NVML}, Platform.WSL),
        ("auto", {DXCORE, FILES}, Platform.WSL),
        ("auto", {FILES}, Platform.TEGRA),
        ("auto", {FILES, NVML}, Platform.NVML),
        ("auto", {NVML, INTEGRATED}, Platform.TEGRA),
        ("auto", {NVML}, Platform.NVML),
        ("auto", set(), None),
        ("nvml", {DXCORE, NVML}, Platform.WSL),
        ("nvml", {FILES, NVML, INTEGRATED}, Platform.NVML),
        ("nvml", {FILES}, None),
        ("tegra", {DXCORE, NVML}, Platform.TEGRA),
        ("tegra", set(), Platform.TEGRA),
    ],
)
def test_the_first_probe_that_fits_decides(
    strategy: str, there: set[str], platform: Platform | None, tmp_path: Path
) -> None:
    if FILES in there:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/nv_tegra_release").touch()
    resolution = resolve_platform(strategy, "", [tmp_path], lambda: INTEGRATED in there, loader(there))
    assert resolution.platform is platform


def test_case_c27_where_nothing_is_found_each_probe_says_what_it_saw(tmp_path: Path) -> None:
    text = not_found(resolve_platform("auto", "", [tmp_path], lambda: False, loader(())))
    assert "NVML library not found, platform unknown" in text
    assert "runtimeClass" in text
    assert f"wsl: {DXCORE}: cannot open" in text
    assert f"tegra: no files of a Tegra board below {tmp_path}" in text
    assert f"nvml: {NVML}: cannot open" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("models", "integrated"),
    [(["Orin (nvgpu)"], True), (["NVIDIA Thor"], True), (["NVIDIA A30", "Tesla T4"], False), ([], False)],
)
def test_an_integrated_gpu_is_known_by_its_name(models: list[str], integrated: bool) -> None:  # noqa: FBT001 - a column
    assert is_integrated(models) is integrated


def test_a_library_that_is_not_there_says_why() -> None:
    assert "no-such-library.so" in load_error("no-such-library.so")
    assert not load_error("libc.so.6")
