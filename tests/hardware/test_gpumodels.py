import pytest

from gpustow.hardware.gpumodels import GPU_MODELS, GpuModel
from tests.hardware.profiletable import BOARDS, Row


def test_the_boards_with_mig_are_those_of_the_table() -> None:
    assert {name for name, model in GPU_MODELS.items() if model.mig_profiles} == set(BOARDS)


@pytest.mark.parametrize(("board", "row"), [(board, row) for board, rows in BOARDS.items() for row in rows], ids=str)
def test_a_profile_is_named_and_placed_as_the_board_does_it(board: str, row: Row) -> None:
    found = {
        (
            profile.name,
            profile.profile_id,
            profile.nvml_profile,
            profile.gpu_slices,
            profile.memory_slices,
            profile.max_count,
            profile.placements,
        )
        for profile in GPU_MODELS[board].mig_profiles
    }
    assert row in found
    assert len(found) == len(BOARDS[board])


@pytest.mark.parametrize(("model", "slices"), [("NVIDIA A30", 4), ("NVIDIA H200", 8), ("Tesla T4", 8)])
def test_a_card_has_the_memory_slices_of_its_biggest_profile(model: str, slices: int) -> None:
    assert GPU_MODELS[model].memory_slices == slices


@pytest.mark.parametrize("model", GPU_MODELS.values(), ids=lambda model: model.name)
def test_no_profile_is_bigger_than_its_share_of_the_card(model: GpuModel) -> None:
    for profile in model.mig_profiles:
        assert model.memory_mib is not None
        assert profile.memory_slices is not None
        eighths = -(-8 * profile.memory_slices // model.memory_slices)
        assert profile.memory_mib <= model.memory_mib * eighths / 8
