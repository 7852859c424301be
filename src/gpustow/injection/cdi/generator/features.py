"""The feature flags of CDI specifications that the NVIDIA Container Toolkit 1.20 knows, and what they mean here.

Two of them choose between ways to generate that we do not have: we never ask libnvidia-sandboxutils, and a Tegra board
is always one device. So these are accepted, and are what happens anyway.
"""

from dataclasses import dataclass

from gpustow.config import Config

_EXPLICIT_LIBRARIES = "enable-explicit-driver-libraries"
_COHERENT = "enable-coherent-annotations"
_NO_GIDS = "no-additional-gids-for-device-nodes"
_NO_IPC = "disable-ipc-discoverer"
_AS_ALWAYS = ("disable-nvsandboxutils", "disable-nvsandbox-utils", "disable-multiple-csv-devices")

KNOWN = (_EXPLICIT_LIBRARIES, _COHERENT, _NO_GIDS, _NO_IPC, *_AS_ALWAYS)


@dataclass(frozen=True, slots=True)
class Features:
    """What the flags ask for; `unknown` are those that nobody knows, in their order."""

    explicit_libraries: bool = False
    coherent_annotations: bool = False
    additional_gids: bool = True
    sockets: bool = True
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Config) -> "Features":
        """What the configuration asks for."""
        flags = config.cdi_feature_flags
        return cls(
            explicit_libraries=_EXPLICIT_LIBRARIES in flags,
            coherent_annotations=_COHERENT in flags,
            additional_gids=_NO_GIDS not in flags,
            sockets=_NO_IPC not in flags,
            unknown=tuple(dict.fromkeys(flag for flag in flags if flag not in KNOWN)),
        )
