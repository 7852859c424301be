"""The hooks of a specification: what a program of the NVIDIA Container Toolkit does in a container while it is made.

The program is nvidia-cdi-hook, or the older nvidia-ctk, which has the same as its command `hook`; which of the two it
is shows in its name. It is run on the host, so the path is the host's; a bare name is that of a program in /usr/bin.

An operator can leave hooks out. That is needed where the host's program does not know one: up to version 1.17 it fails
then, and with it the container.
"""

from collections.abc import Iterable
from posixpath import basename, join

from gpustow.config import Config
from gpustow.injection.cdi.edits import CdiHook

_PROGRAM = "nvidia-cdi-hook"
_PROGRAMS = "/usr/bin"
_OLDER_PROGRAM = "nvidia-ctk"
_DISABLE_ALL = "all"

CREATE_SYMLINKS = "create-symlinks"
ENABLE_CUDA_COMPAT = "enable-cuda-compat"
UPDATE_LDCACHE = "update-ldcache"
DISABLE_DEVICE_NODE_MODIFICATION = "disable-device-node-modification"
UPDATE_APPLICATION_PROFILE = "update-application-profile"

_NEVER_MADE = "chmod"
"""It was for an old crun; the toolkit knows its name and has not made it since 1.18."""

HOOKS = (
    CREATE_SYMLINKS,
    ENABLE_CUDA_COMPAT,
    UPDATE_LDCACHE,
    DISABLE_DEVICE_NODE_MODIFICATION,
    UPDATE_APPLICATION_PROFILE,
)
"""Those that we make, in the order in which they run."""


def hook_program(config: Config) -> str:
    """The path of the hooks' program on the host."""
    return join(_PROGRAMS, config.nvidia_cdi_hook_path or _PROGRAM)


class Hooks:
    """Makes the hooks that the configuration does not leave out; each method gives one hook or none."""

    def __init__(self, config: Config) -> None:
        self._path = hook_program(config)
        self._disabled = frozenset(config.cdi_disable_hooks)

    @property
    def all_disabled(self) -> bool:
        """Whether no hook is ever made."""
        return _DISABLE_ALL in self._disabled or self._disabled.issuperset(HOOKS)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of hooks to leave out that no hook has."""
        return tuple(sorted(self._disabled - {*HOOKS, _NEVER_MADE, _DISABLE_ALL}))

    def create_symlinks(self, links: Iterable[str]) -> tuple[CdiHook, ...]:
        """Makes links in the container, each given as `target::link`."""
        arguments = [argument for link in links for argument in ("--link", link)]
        return self._hook(CREATE_SYMLINKS, *arguments) if arguments else ()

    def enable_cuda_compat(self, *arguments: str) -> tuple[CdiHook, ...]:
        """Puts the image's own CUDA libraries first where they are newer than the driver's.

        The arguments say what they are compared with. To be made before the loader's cache.
        """
        return self._hook(ENABLE_CUDA_COMPAT, *arguments)

    def update_ldcache(self, directories: Iterable[str]) -> tuple[CdiHook, ...]:
        """Makes the loader's cache of the container anew, with these directories."""
        arguments = [argument for directory in directories for argument in ("--folder", directory)]
        return self._hook(UPDATE_LDCACHE, *arguments) if arguments else ()

    def disable_device_node_modification(self) -> tuple[CdiHook, ...]:
        """Keeps the driver's programs in the container from making device nodes."""
        return self._hook(DISABLE_DEVICE_NODE_MODIFICATION)

    def update_application_profile(self) -> tuple[CdiHook, ...]:
        """Tells the graphics libraries which GPUs the container has."""
        return self._hook(UPDATE_APPLICATION_PROFILE)

    def _hook(self, name: str, *arguments: str) -> tuple[CdiHook, ...]:
        if _DISABLE_ALL in self._disabled or name in self._disabled:
            return ()
        program = basename(self._path)
        command = (program, "hook") if program == _OLDER_PROGRAM else (program,)
        return (CdiHook("createContainer", self._path, (*command, name, *arguments), env=("NVIDIA_CTK_DEBUG=false",)),)
