"""The engines that the GPU instances of known boards have, for node models; a driver tells them itself.

Source: the tables of supported profiles in NVIDIA's MIG user guide (R570). Ampere and Hopper encode no video, so
that no instance has encoders. Boards that are not listed are not known.
"""

from collections.abc import Mapping

from gpustow.hardware.mig import MigEngines, MigProfile

_Shape = tuple[int, int | None, str]
"""What tells the profiles of one board apart whatever its memory: GPU slices, memory slices, attribute."""

_A30: Mapping[_Shape, MigEngines] = {
    (1, 1, ""): MigEngines(copy=1),
    (1, 1, "+me"): MigEngines(copy=1, decoder=1, jpeg=1, ofa=1),
    (2, 2, ""): MigEngines(copy=2, decoder=2),
    (2, 2, "+me"): MigEngines(copy=2, decoder=2, jpeg=1, ofa=1),
    (4, 4, ""): MigEngines(copy=4, decoder=4, jpeg=1, ofa=1),
}

_A100: Mapping[_Shape, MigEngines] = {
    (1, 1, ""): MigEngines(copy=1),
    (1, 1, "+me"): MigEngines(copy=1, decoder=1, jpeg=1, ofa=1),
    (1, 2, ""): MigEngines(copy=1, decoder=1),
    (2, 2, ""): MigEngines(copy=2, decoder=1),
    (3, 4, ""): MigEngines(copy=3, decoder=2),
    (4, 4, ""): MigEngines(copy=4, decoder=2),
    (7, 8, ""): MigEngines(copy=7, decoder=5, jpeg=1, ofa=1),
}

_HOPPER: Mapping[_Shape, MigEngines] = {
    (1, 1, ""): MigEngines(copy=1, decoder=1, jpeg=1),
    (1, 1, "+me"): MigEngines(copy=1, decoder=1, jpeg=1, ofa=1),
    (1, 2, ""): MigEngines(copy=1, decoder=1, jpeg=1),
    (2, 2, ""): MigEngines(copy=2, decoder=2, jpeg=2),
    (3, 4, ""): MigEngines(copy=3, decoder=3, jpeg=3),
    (4, 4, ""): MigEngines(copy=4, decoder=4, jpeg=4),
    (7, 8, ""): MigEngines(copy=8, decoder=7, jpeg=7, ofa=1),
}

_BOARDS: Mapping[str, Mapping[_Shape, MigEngines]] = {
    "NVIDIA A30": _A30,
    "NVIDIA A100": _A100,
    "NVIDIA H100": _HOPPER,
    "NVIDIA H200": _HOPPER,
    "NVIDIA GH200": _HOPPER,
}
"""By how the name of the board begins."""


def known_engines(model: str, profile: MigProfile) -> MigEngines | None:
    """The engines of an instance with this profile on a board of this model; None where they are not known."""
    shape = (profile.gpu_slices, profile.memory_slices, profile.attribute)
    boards = (engines for name, engines in _BOARDS.items() if model.startswith(name))
    return next(boards, {}).get(shape)
