"""The section `resources`: names for models and profiles."""

import pytest

from gpustow.config import ResourcePattern
from gpustow.config.file import FileContent, read_file


def read(text: str) -> FileContent:
    return read_file(f"resources: {{{text}}}", "x")


def test_patterns_for_gpus_and_mig_are_read_in_order() -> None:
    content = read(
        "gpus: [{pattern: '*A100*', name: a100}, {pattern: '*', name: nvidia.com/gpu}], "
        "mig: [{pattern: '1g.*', name: small}]"
    )
    assert content.gpu_patterns == (
        ResourcePattern("*A100*", "nvidia.com/a100"),
        ResourcePattern("*", "nvidia.com/gpu"),
    )
    assert content.mig_patterns == (ResourcePattern("1g.*", "nvidia.com/small"),)
    assert content.findings.warnings == content.findings.unknown == []


@pytest.mark.parametrize("text", ["", "gpus: , mig: []"])
def test_no_patterns_are_no_patterns(text: str) -> None:
    assert read(text).gpu_patterns == ()


@pytest.mark.parametrize("entry", ["{pattern: '*'}", "{name: gpu}", "{}"])
def test_an_entry_without_pattern_or_name_is_dropped_with_a_warning(entry: str) -> None:
    content = read(f"mig: [{entry}]")
    assert content.mig_patterns == ()
    assert [problem.path for problem in content.findings.warnings] == ["resources.mig[0]"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("gpus: 3", "resources.gpus"),
        ("gpus: [x]", "resources.gpus[0]"),
        ("gpus: [{pattern: 3, name: gpu}]", "resources.gpus[0].pattern"),
        ("gpus: [{pattern: '*', name: [gpu]}]", "resources.gpus[0].name"),
        ("mig: [{pattern: '*', name: GPU}]", "resources.mig[0].name"),
        ("mig: [{pattern: '*', name: ''}]", "resources.mig[0].name"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(text: str, path: str) -> None:
    assert [problem.path for problem in read(text).findings.refused] == [path]


def test_keys_are_exact() -> None:
    content = read("gpus: [{Pattern: '*', pattern: 'x', name: gpu}]")
    assert [str(problem) for problem in content.findings.unknown] == [
        "resources.gpus[0].Pattern: unknown key, without effect; did you mean 'pattern'?"
    ]
