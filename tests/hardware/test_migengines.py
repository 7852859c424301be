import pytest

from gpustow.hardware.gpumodels import GPU_MODELS
from gpustow.hardware.mig import MigEngines
from gpustow.hardware.migengines import known_engines
from tests.hardware.profiletable import BOARDS


@pytest.mark.parametrize(
    ("model", "profile", "engines"),
    [
        ("NVIDIA A30", "1g.6gb", MigEngines(copy=1)),
        ("NVIDIA A30", "1g.6gb+me", MigEngines(copy=1, decoder=1, jpeg=1, ofa=1)),
        ("NVIDIA A30", "4g.24gb", MigEngines(copy=4, decoder=4, jpeg=1, ofa=1)),
        ("NVIDIA A100-SXM4-80GB", "1g.20gb", MigEngines(copy=1, decoder=1)),
        ("NVIDIA A100 80GB PCIe", "3g.40gb", MigEngines(copy=3, decoder=2)),
        ("NVIDIA H100 80GB HBM3", "7g.80gb", MigEngines(copy=8, decoder=7, jpeg=7, ofa=1)),
        ("NVIDIA B200", "1g.23gb", None),
    ],
)
def test_the_engines_of_a_profile_are_those_of_its_board(model: str, profile: str, engines: MigEngines | None) -> None:
    (own,) = [each for each in GPU_MODELS[model].mig_profiles if each.name == profile]
    assert known_engines(model, own) == engines


@pytest.mark.parametrize(
    "board", [board for board in BOARDS if board.startswith(("NVIDIA A", "NVIDIA H", "NVIDIA GH"))]
)
def test_every_profile_of_ampere_and_hopper_has_engines(board: str) -> None:
    assert all(known_engines(board, profile) is not None for profile in GPU_MODELS[board].mig_profiles)
