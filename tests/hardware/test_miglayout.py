from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.gpumodels import GPU_MODELS
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.miglayout import Card, LayoutEntry, LayoutError, instance_minor, lay_out


def _card(model: str = "NVIDIA A100-SXM4-40GB", minor: int = 0) -> Card:
    known = GPU_MODELS[model]
    return Card("GPU-x", minor, known.mig_profiles, known.memory_slices, (f"/dev/nvidia{minor}",))


def _entries(*names: str) -> list[LayoutEntry]:
    return [LayoutEntry(name) for name in names]


def _cut(*names: str, model: str = "NVIDIA A100-SXM4-40GB") -> tuple[MigDevice, ...]:
    return lay_out(_card(model), _entries(*names))


@pytest.mark.parametrize(
    ("model", "names", "instances", "starts"),
    [
        ("NVIDIA A100-SXM4-40GB", ["1g.5gb"] * 7, [7, 8, 9, 10, 11, 12, 13], [0, 1, 2, 3, 4, 5, 6]),
        ("NVIDIA A100-SXM4-40GB", ["3g.20gb", "2g.10gb", "1g.5gb"], [1, 3, 7], [0, 4, 6]),
        ("NVIDIA A100-SXM4-40GB", ["3g.20gb", "3g.20gb"], [1, 2], [0, 4]),
        ("NVIDIA A100-SXM4-40GB", ["7g.40gb"], [0], [0]),
        ("NVIDIA A100-SXM4-40GB", ["1g.10gb"] * 4, [3, 4, 5, 6], [0, 2, 4, 6]),
        ("NVIDIA A30", ["1g.6gb"] * 4, [3, 4, 5, 6], [0, 1, 2, 3]),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ["2g.48gb", "1g.24gb-me"], [1, 3], [0, 6]),
    ],
)
def test_instances_are_numbered_and_placed(
    model: str, names: list[str], instances: list[int], starts: list[int]
) -> None:
    devices = _cut(*names, model=model)
    assert [device.gpu_instance for device in devices] == instances
    assert [device.start for device in devices] == starts
    assert [device.index for device in devices] == list(range(len(names)))


def test_a_small_instance_makes_way_for_a_bigger_one_that_comes_later_in_the_layout() -> None:
    assert [device.start for device in _cut("1g.5gb", "4g.20gb", "2g.10gb")] == [6, 0, 4]


def test_a_given_start_and_given_ids_are_kept() -> None:
    entries = [LayoutEntry("1g.5gb", "MIG-a", 6, 13, 0), LayoutEntry("1g.5gb")]
    first, second = lay_out(_card(), entries)
    assert (first.uuid, first.start, first.gpu_instance) == ("MIG-a", 6, 13)
    assert (second.start, second.gpu_instance) == (0, 7)


def test_parts_of_an_instance_share_it_until_its_slices_are_used() -> None:
    devices = _cut("1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb")
    assert [(device.gpu_instance, device.compute_instance) for device in devices] == [(1, 0), (1, 1), (2, 0)]
    assert [device.profile.name for device in devices] == ["1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb"]
    assert len({device.uuid for device in devices}) == 3


def test_parts_with_a_given_instance_go_there_whatever_stands_between() -> None:
    entries = [
        LayoutEntry("1c.2g.10gb", gpu_instance=5, compute_instance=1),
        LayoutEntry("1g.5gb"),
        LayoutEntry("1c.2g.10gb", gpu_instance=5),
    ]
    devices = lay_out(_card(), entries)
    assert [(device.gpu_instance, device.compute_instance) for device in devices] == [(5, 1), (7, 0), (5, 0)]


def test_paths_are_those_of_the_card_and_of_both_instances() -> None:
    """The driver's /proc/driver/nvidia-caps/mig-minors lists gpu0/gi7/access as 66, gpu1/gi0/access as 138."""
    (device,) = lay_out(_card(minor=1), [LayoutEntry("7g.40gb")])
    assert device.device_paths == ("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap138", "/dev/nvidia-caps/nvidia-cap139")
    assert instance_minor(0, 7) == 66
    assert instance_minor(0, 0) == 3


@pytest.mark.parametrize(
    ("entries", "entry", "message"),
    [
        (_entries("1g.5gb", "1g.6gb"), 1, "did you mean 1g.5gb"),
        (_entries("huge"), 0, "it can be: 1g.5gb"),
        (_entries("7c.3g.20gb"), 0, "has fewer"),
        (_entries(*["1g.5gb"] * 8), 7, "no room for another 1g.5gb"),
        (_entries("1g.5gb+me", "1g.5gb+me"), 1, r"no room for another 1g.5gb\+me"),
        (_entries("4g.20gb", "4g.20gb"), 1, "no room for another 4g.20gb"),
        (_entries("3g.20gb", "1g.10gb", "1g.10gb", "1g.5gb"), 3, "no room for another 1g.5gb"),
        ([LayoutEntry("2g.10gb", start=1)], 0, "can start at memory slice 0, 2, 4, not 1"),
        ([LayoutEntry("1g.5gb", start=1), LayoutEntry("1g.5gb", start=1)], 1, "no room"),
        ([LayoutEntry("1g.5gb", gpu_instance=7), LayoutEntry("1g.5gb", gpu_instance=7)], 1, "instance 7 has no room"),
        ([LayoutEntry("1c.2g.10gb", compute_instance=0)] * 2, 0, "has compute instance 0 twice"),
        ([LayoutEntry("1g.5gb", index=1), LayoutEntry("1g.5gb")], 1, "two MIG devices with index 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_device_and_the_reason(
    entries: Sequence[LayoutEntry], entry: int, message: str
) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        lay_out(_card(), entries)
    assert caught.value.entry == entry


def test_a_card_without_mig_takes_no_layout() -> None:
    with pytest.raises(LayoutError, match="has no MIG"):
        lay_out(_card("Tesla T4"), _entries("1g.5gb"))


def _fits(card: Card, profiles: Sequence[MigProfile]) -> bool:
    """Brute force: whether any choice of starts leaves no overlap."""
    if sum(profile.gpu_slices for profile in profiles) > card.gpu_slices:
        return False
    if any(profiles.count(profile) > (profile.max_count or 0) for profile in profiles):
        return False
    for starts in product(*(profile.placements for profile in profiles)):
        cells = [
            start + offset
            for start, profile in zip(starts, profiles, strict=True)
            for offset in range(profile.memory_slices or 0)
        ]
        if len(set(cells)) == len(cells):
            return True
    return False


@given(st.lists(st.sampled_from(GPU_MODELS["NVIDIA A100-SXM4-40GB"].mig_profiles), max_size=5))
def test_a_layout_is_taken_exactly_when_some_placement_fits(profiles: list[MigProfile]) -> None:
    card = _card()
    try:
        devices = lay_out(card, [LayoutEntry(profile.name) for profile in profiles])
    except LayoutError:
        assert not _fits(card, profiles)
        return
    assert _fits(card, profiles)
    cells = [(device.start or 0) + offset for device in devices for offset in range(device.profile.memory_slices or 0)]
    assert len(set(cells)) == len(cells)
    assert len({device.gpu_instance for device in devices}) == len(devices)
