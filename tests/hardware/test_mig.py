import pytest

from gpustow.hardware.gpumodels import GPU_MODELS
from gpustow.hardware.mig import MigProfile, profile_memory_gb

_MIB = 1 << 20


@pytest.mark.parametrize(
    ("instance", "card", "memory"),
    [
        (22528, 183359, 23),  # B200 1g: 22.5, which rounding to even would make 22
        (46848, 189471, 47),  # GB200 2g: 46.5
        (71424, 143771, 71),  # H200 3g: 70.5
        (136192, 275040, 135),  # B300 3g: 134.5
        (16384, 143771, 18),
        (4864, 40960, 5),
        (40192, 40960, 40),
    ],
)
def test_memory_in_a_name_is_rounded_half_away_from_zero(instance: int, card: int, memory: int) -> None:
    assert profile_memory_gb(instance, card * _MIB) == memory


@pytest.mark.parametrize(
    ("profile", "name", "suffix"),
    [
        (MigProfile(1, 1, 10, 9984), "1g.10gb", "1g.10gb"),
        (MigProfile(2, 1, 10, 9856), "1c.2g.10gb", "1c.2g.10gb"),
        (MigProfile(1, 1, 5, 4864, "+me"), "1g.5gb+me", "1g.5gb.me"),
        (MigProfile(1, 1, 24, 24192, "+me.all"), "1g.24gb+me.all", "1g.24gb.me.all"),
        (MigProfile(1, 1, 24, 24192, "-me"), "1g.24gb-me", "1g.24gb-me"),
    ],
)
def test_a_profile_is_named_by_its_parts(profile: MigProfile, name: str, suffix: str) -> None:
    assert (profile.name, profile.resource_suffix) == (name, suffix)


def test_every_known_profile_gets_its_memory_from_sizes_alone() -> None:
    for model in GPU_MODELS.values():
        for profile in model.mig_profiles:
            assert model.memory_mib is not None
            assert profile_memory_gb(profile.memory_mib, model.memory_mib * _MIB) == profile.memory_gb
