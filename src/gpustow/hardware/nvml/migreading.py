"""Reading how MIG cuts a GPU: the profiles that it can be cut into, and the devices that it is cut into.

A MIG device's name follows from its slices and memory, which NVML gives as attributes, and from the profile of its GPU
instance, which alone knows suffixes such as `+me`. Where NVML does not tell how profiles lie on the card (it does so
only in MIG mode), the table of known models does.

A MIG device that cannot be served is left out and told, and the others go on.
"""

from ctypes import byref, c_uint
from dataclasses import replace
from typing import Any

from gpustow.hardware.gpumodels import GpuModel
from gpustow.hardware.mig import MigDevice, MigEngines, MigProfile, profile_memory_gb
from gpustow.hardware.nvml.asking import GpuQuestions
from gpustow.hardware.nvml.library import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED
from gpustow.hardware.systemfiles import MIG_MINORS, MigMinors, capability_path

_PROFILES = 18
"""How many profiles NVML's enumeration has."""

_MOST_PLACEMENTS = 64
_MIB = 1 << 20

_SUFFIXES = {7: "+me", 8: "+me", 10: "+gfx", 11: "+gfx", 12: "+gfx", 13: "-me", 14: "-me", 15: "+me.all",
             16: "+me.all", 17: "+gfx"}  # fmt: skip
"""Suffix of the name by number in NVML's enumeration: REV1 is +me, GFX, NO_ME, ALL_ME; the others have none."""


def read_profiles(
    questions: GpuQuestions, handle: Any, memory_bytes: int | None, known: GpuModel | None
) -> tuple[MigProfile, ...]:
    """The profiles that the GPU can be cut into, in the order of NVML's enumeration."""
    total = memory_bytes or ((known.memory_mib or 0) * _MIB if known else 0)
    table = {profile.nvml_profile: profile for profile in known.mig_profiles} if known else {}
    profiles = []
    for number in range(_PROFILES):
        info = questions.ask(
            "MIG profiles",
            "nvmlDeviceGetGpuInstanceProfileInfo",
            handle,
            number,
            1,
            quiet={NOT_SUPPORTED, INVALID_ARGUMENT},
        )
        if info is None:
            continue
        memory_mib = int(info.memorySizeMB)
        profile = MigProfile(
            gpu_slices=int(info.sliceCount),
            compute_slices=int(info.sliceCount),
            memory_gb=profile_memory_gb(memory_mib, total) if total else memory_mib // 1024,
            memory_mib=memory_mib,
            attribute=_SUFFIXES.get(number, ""),
            multiprocessors=int(info.multiprocessorCount),
            nvml_profile=number,
            profile_id=int(info.id),
            max_count=int(info.instanceCount),
        )
        profiles.append(_placed(questions, handle, profile, table.get(number)))
    return tuple(profiles)


def _placed(questions: GpuQuestions, handle: Any, profile: MigProfile, known: MigProfile | None) -> MigProfile:
    """The profile with the places at which it can lie on the card."""
    places = (questions.nvml.bindings.c_nvmlGpuInstancePlacement_t * _MOST_PLACEMENTS)()
    count = c_uint(_MOST_PLACEMENTS)
    answered = questions.ask(
        "places of MIG profiles",
        "nvmlDeviceGetGpuInstancePossiblePlacements",
        handle,
        profile.profile_id,
        byref(places),
        byref(count),
        quiet={NOT_SUPPORTED},
    )
    if answered is not None and count.value:
        starts = tuple(sorted(int(place.start) for place in places[: count.value]))
        return replace(profile, placements=starts, memory_slices=int(places[0].size))
    if known is not None:
        return replace(profile, placements=known.placements, memory_slices=known.memory_slices)
    return profile


def read_mig_devices(
    questions: GpuQuestions,
    handle: Any,
    card: tuple[str, int, int | None],
    profiles: tuple[MigProfile, ...],
    minors: MigMinors,
) -> tuple[MigDevice, ...]:
    """The MIG devices of the GPU; `card` is its device path, minor number and memory in bytes.

    `profiles` are those that the devices can have.
    """
    most = questions.ask("number of MIG devices", "nvmlDeviceGetMaxMigDeviceCount", handle)
    devices = []
    for index in range(most or 0):
        mig = questions.ask(
            "handle",
            "nvmlDeviceGetMigDeviceHandleByIndex",
            handle,
            index,
            subject=f"MIG device {questions.index}:{index}",
            quiet={NOT_FOUND, INVALID_ARGUMENT},
        )
        if mig is not None:
            device = _MigReading(questions, handle, mig, index).device(card, profiles, minors)
            if device is not None:
                devices.append(device)
    return tuple(devices)


class _MigReading:
    """Reads one MIG device."""

    def __init__(self, questions: GpuQuestions, parent: Any, handle: Any, index: int) -> None:
        self._questions = questions
        self._parent = parent
        self._handle = handle
        self._index = index
        self._subject = f"MIG device {questions.index}:{index}"

    def device(
        self, card: tuple[str, int, int | None], profiles: tuple[MigProfile, ...], minors: MigMinors
    ) -> MigDevice | None:
        """The device, or None if it cannot be served, which is told."""
        path, minor, card_bytes = card
        uuid = self._ask("UUID", "nvmlDeviceGetUUID")
        gpu_instance = self._ask("GPU instance", "nvmlDeviceGetGpuInstanceId")
        compute_instance = self._ask("compute instance", "nvmlDeviceGetComputeInstanceId")
        attributes = self._ask("attributes", "nvmlDeviceGetAttributes")
        if uuid is None or gpu_instance is None or compute_instance is None or attributes is None:
            self._questions.tell("left out", self._subject)
            return None
        capabilities = [minors.get((minor, gpu_instance, None)), minors.get((minor, gpu_instance, compute_instance))]
        nodes = tuple(capability_path(number) for number in capabilities if number is not None)
        if len(nodes) != len(capabilities):
            self._questions.tell(
                f"left out, because /{MIG_MINORS} does not list GPU instance {gpu_instance} and compute instance "
                f"{compute_instance} of minor {minor}",
                self._subject,
            )
            return None
        info = self._instance_info(gpu_instance)
        profile_id = None if info is None else int(info.profileId)
        memory = self._ask("memory", "nvmlDeviceGetMemoryInfo")
        profile = _profile_of(attributes, profile_id, profiles, card_bytes)
        return MigDevice(
            index=self._index,
            uuid=uuid,
            profile=profile,
            gpu_instance=gpu_instance,
            compute_instance=compute_instance,
            memory_bytes=profile.memory_mib * _MIB if memory is None else int(memory.total),
            device_paths=(path, *nodes),
            start=None if info is None else int(info.placement.start),
            engines=_engines(attributes),
        )

    def _ask(self, what: str, call: str) -> Any | None:
        return self._questions.ask(what, call, self._handle, subject=self._subject)

    def _instance_info(self, gpu_instance: int) -> Any | None:
        """Profile and place of the GPU instance, where NVML tells."""
        ask, what = self._questions.ask, "exact profile and place"
        instance = ask(what, "nvmlDeviceGetGpuInstanceById", self._parent, gpu_instance, subject=self._subject)
        if instance is None:
            return None
        return ask(what, "nvmlGpuInstanceGetInfo", instance, subject=self._subject)


def _engines(attributes: Any) -> MigEngines:
    return MigEngines(
        copy=int(attributes.sharedCopyEngineCount),
        decoder=int(attributes.sharedDecoderCount),
        encoder=int(attributes.sharedEncoderCount),
        jpeg=int(attributes.sharedJpegCount),
        ofa=int(attributes.sharedOfaCount),
    )


def _profile_of(
    attributes: Any, profile_id: int | None, profiles: tuple[MigProfile, ...], card_bytes: int | None
) -> MigProfile:
    """The profile of a MIG device: that of its GPU instance, with the device's own slices and memory.

    Where the GPU instance does not tell its profile, it is the first with as many slices and as much memory: a suffix
    such as `+me` is lost then, which is told with the reading that failed.
    """
    gpu_slices, memory_mib = int(attributes.gpuInstanceSliceCount), int(attributes.memorySizeMB)
    matches = [
        profile
        for profile in profiles
        if (profile.profile_id == profile_id)
        or (profile_id is None and (profile.gpu_slices, profile.memory_mib) == (gpu_slices, memory_mib))
    ]
    memory_gb = profile_memory_gb(memory_mib, card_bytes) if card_bytes else memory_mib // 1024
    own = MigProfile(
        gpu_slices,
        int(attributes.computeInstanceSliceCount),
        memory_gb,
        memory_mib,
        multiprocessors=int(attributes.multiprocessorCount),
    )
    if not matches:
        return own
    return replace(
        matches[0],
        compute_slices=own.compute_slices,
        multiprocessors=own.multiprocessors,
        memory_mib=memory_mib,
        memory_gb=memory_gb if card_bytes else matches[0].memory_gb,
    )
