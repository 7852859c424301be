"""Names of resources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.config import resource_name


@pytest.mark.parametrize("text", ["gpu", "nvidia.com/gpu"])
def test_the_prefix_is_added_where_it_is_missing(text: str) -> None:
    assert resource_name(text) == "nvidia.com/gpu"


@pytest.mark.parametrize(
    "text", ["foo.com/gpu", "GPU", "my_gpu", "-gpu", "gpu.", "", "nvidia.com/", "a..b", "mig-1g.5gb+me", "gpu\n", "gpü"]
)
def test_a_name_that_breaks_the_rules_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a resource name"):
        resource_name(text)


def test_a_name_has_63_characters_at_most() -> None:
    assert len(resource_name("a" * 52)) == 63
    with pytest.raises(ValueError, match="64 characters, more than 63"):
        resource_name("a" * 53)


@given(st.from_regex(r"[a-z0-9.-]{1,60}", fullmatch=True))
def test_what_is_accepted_is_accepted_again(text: str) -> None:
    try:
        name = resource_name(text)
    except ValueError:
        return
    assert resource_name(name) == name
    assert resource_name(name.removeprefix("nvidia.com/")) == name


@pytest.mark.parametrize("text", ["amd.com/gpu", "nvidia/gpu", "NVIDIA.com/gpu"])
def test_another_prefix_is_told_as_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r"the prefix has to be nvidia\.com/, not "):
        resource_name(text)
