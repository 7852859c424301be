"""Hooks: how they are called, and which are left out."""

import pytest

from gpustow.config import Config
from gpustow.injection.cdi.edits import CdiHook
from gpustow.injection.cdi.generator.hooks import HOOKS, Hooks


def _all(hooks: Hooks) -> list[CdiHook]:
    return [
        *hooks.create_symlinks(["a::/b"]),
        *hooks.enable_cuda_compat("--host-driver-version=1"),
        *hooks.update_ldcache(["/usr/lib64"]),
        *hooks.disable_device_node_modification(),
        *hooks.update_application_profile(),
    ]


def test_each_hook_runs_the_program_when_the_container_is_made() -> None:
    hooks = _all(Hooks(Config(nvidia_cdi_hook_path="/usr/local/nvidia/toolkit/nvidia-cdi-hook")))
    assert {(hook.hook_name, hook.path, hook.env) for hook in hooks} == {
        ("createContainer", "/usr/local/nvidia/toolkit/nvidia-cdi-hook", ("NVIDIA_CTK_DEBUG=false",))
    }
    assert [hook.args for hook in hooks] == [
        ("nvidia-cdi-hook", "create-symlinks", "--link", "a::/b"),
        ("nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=1"),
        ("nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"),
        ("nvidia-cdi-hook", "disable-device-node-modification"),
        ("nvidia-cdi-hook", "update-application-profile"),
    ]


def test_the_older_program_has_them_as_its_command_hook() -> None:
    (hook,) = Hooks(Config(nvidia_cdi_hook_path="/usr/bin/nvidia-ctk")).update_application_profile()
    assert hook.args == ("nvidia-ctk", "hook", "update-application-profile")


def test_a_hook_with_nothing_to_do_is_not_made() -> None:
    hooks = Hooks(Config())
    assert hooks.create_symlinks([]) == ()
    assert hooks.update_ldcache([]) == ()


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_can_be_left_out_by_name(name: str) -> None:
    hooks = Hooks(Config(cdi_disable_hooks=(name, "chmod")))
    assert [hook.args[2] for hook in _all(hooks)] == [each for each in HOOKS if each != name]
    assert hooks.unknown == ()
    assert not hooks.all_disabled


@pytest.mark.parametrize("names", [("all",), HOOKS, ("all", "chmod")])
def test_all_can_be_left_out(names: tuple[str, ...]) -> None:
    hooks = Hooks(Config(cdi_disable_hooks=names))
    assert _all(hooks) == []
    assert hooks.all_disabled


def test_names_that_no_hook_has_are_told() -> None:
    assert Hooks(Config(cdi_disable_hooks=("update-ldcach", "all", "ldconfig"))).unknown == (
        "ldconfig",
        "update-ldcach",
    )


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/usr/local/nvidia/toolkit/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook"),
        ("nvidia-ctk", "/usr/bin/nvidia-ctk"),
        ("", "/usr/bin/nvidia-cdi-hook"),
    ],
)
def test_a_program_without_a_path_is_in_the_hosts_usr_bin(given: str, path: str) -> None:
    (hook,) = Hooks(Config(nvidia_cdi_hook_path=given)).disable_device_node_modification()
    assert hook.path == path
    assert hook.args[0] == path.rpartition("/")[2]
