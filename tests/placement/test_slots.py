"""Which devices of a GPU are handed out."""

from gpustow.hardware.mig import MigProfile
from gpustow.resources.device import Device
from tests.placement.cards import ask, mig, whole


def taken(devices: list[Device], starts: list[int], size: int, policy: str = "packed") -> list[str]:
    """What is given when the MIG devices at these starts are free."""
    available = [device.id for device in devices if device.edge in starts]
    return list(ask(policy, devices, size, available=available).device_ids)


def test_the_shortest_free_window_is_used_up_first() -> None:
    devices = mig([range(7)])
    assert taken(devices, [0, 1, 2, 4, 5], 1) == ["mig0@4"]
    assert taken(devices, [0, 1, 2, 4, 5], 2) == ["mig0@4", "mig0@5"]
    assert taken(devices, [0, 1, 2, 4, 5], 3) == ["mig0@0", "mig0@4", "mig0@5"]


def test_of_equal_windows_the_lowest_is_used_from_its_lower_end() -> None:
    assert taken(mig([range(7)]), [0, 1, 2, 4, 5, 6], 2) == ["mig0@0", "mig0@1"]


def test_one_slot_requests_leave_room_for_a_larger_profile() -> None:
    devices = mig([range(7)])
    free = list(range(7))
    for expected in range(3):
        (id_,) = taken(devices, free, 1)
        assert id_ == f"mig0@{expected}"
        free.remove(expected)


def test_a_window_ends_where_memory_slices_are_not_side_by_side() -> None:
    devices = mig([[0, 1, 3, 4, 5]])
    assert taken(devices, [0, 1, 3, 4, 5], 1) == ["mig0@0"]
    assert taken(devices, [0, 1, 5], 1) == ["mig0@5"]


def test_without_placements_neighbours_by_index_are_side_by_side() -> None:
    unknown = MigProfile(1, 1, 5, 4864)
    devices = mig([[0, 2, 4, 6]], profile=unknown)
    assert taken(devices, [0, 2, 6], 1) == ["mig0@6"]
    assert taken(devices, [0, 2, 4], 2) == ["mig0@0", "mig0@2"]


def test_packing_fills_a_mig_device_that_is_begun_before_it_opens_another() -> None:
    devices = mig([[0, 1, 2]], shared=3)
    available = [device.id for device in devices if device.id not in {"mig0@1::0", "mig0@2::0", "mig0@2::2"}]
    assert ask("packed", devices, 4, available=available).device_ids == (
        "mig0@0::0",
        "mig0@1::1",
        "mig0@1::2",
        "mig0@2::1",
    )


def test_distributing_takes_turns_among_the_mig_devices_of_a_gpu() -> None:
    devices = mig([[0, 1, 2]], shared=2)
    available = [device.id for device in devices if device.id != "mig0@1::0"]
    for policy in ("distributed", "spread"):
        assert ask(policy, devices, 2, available=available).device_ids == ("mig0@0::0", "mig0@2::0")
        assert ask(policy, devices, 5, available=available).device_ids == tuple(available)


def test_a_gpu_offered_as_a_whole_beside_its_mig_devices_is_given_like_them() -> None:
    devices = [*mig([[0, 1]]), *whole(1)]
    assert ask("packed", devices, 1).device_ids == ("gpu0",)
    assert ask("packed", devices, 1, available=["mig0@1", "gpu0"]).device_ids == ("gpu0",)
