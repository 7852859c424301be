import re
from importlib.metadata import entry_points, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
COPIED = [
    source for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for source in line.split()[:-1]
]


@pytest.mark.parametrize("source", COPIED)
def test_what_is_copied_exists_and_reaches_the_builder(source: str) -> None:
    assert (ROOT / source).exists()
    assert f"!{source}" in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def test_one_argument_names_the_image_of_all_stages_so_that_it_can_be_pinned() -> None:
    [base] = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert f"--build-arg BASE={base}@sha256:DIGEST" in DOCKERFILE


def test_the_image_has_a_python_that_the_package_is_made_for() -> None:
    [version] = re.findall(r"^ARG BASE=python:(\d+\.\d+)-", DOCKERFILE, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in metadata("gpustow").get_all("Classifier", [])


def test_every_package_that_is_installed_is_checked_by_hash_or_built_here() -> None:
    installs = re.findall(r"pip install ([^&\n]+)", DOCKERFILE)
    assert len(installs) == 3
    assert all("--require-hashes" in words or "--no-index" in words for words in installs)


def test_the_entrypoint_is_a_program_of_the_package() -> None:
    [program] = re.findall(r'^ENTRYPOINT \["([^"]+)"\]$', DOCKERFILE, re.MULTILINE)
    [script] = entry_points(group="console_scripts", name=program)
    assert script.value == "gpustow.cli:plugin_main"


def test_the_container_runtime_is_asked_for_all_gpus_and_the_management_library() -> None:
    assert "NVIDIA_VISIBLE_DEVICES=all" in DOCKERFILE
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in DOCKERFILE
