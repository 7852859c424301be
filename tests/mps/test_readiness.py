"""The MPS control daemon is stood in for by a script that answers, refuses or hangs."""

import asyncio
import os
from pathlib import Path

import pytest

from gpustow.mps import MpsControl
from gpustow.mps.readiness import CONTROL_PROGRAM


def control(tmp_path: Path, script: str, *, seconds: float = 20.0) -> MpsControl:
    program = tmp_path / CONTROL_PROGRAM
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return MpsControl(tmp_path / "mps", seconds=seconds, find=lambda name: str(tmp_path / name))


async def test_a_daemon_that_answers_is_no_trouble(tmp_path: Path) -> None:
    assert await control(tmp_path, "exit 0").trouble("nvidia.com/gpu") is None


async def test_it_is_asked_one_command_with_its_directories_and_nothing_else_in_the_environment(tmp_path: Path) -> None:
    """A shell adds PWD, OLDPWD, SHLVL and _ by itself."""
    script = f"cat > {tmp_path}/asked; /usr/bin/env > {tmp_path}/env"
    assert await control(tmp_path, script).trouble("nvidia.com/gpu.shared") is None
    assert (tmp_path / "asked").read_text() == "get_default_active_thread_percentage"
    lines = (tmp_path / "env").read_text().splitlines()
    assert {line for line in lines if line.partition("=")[0] not in {"PWD", "OLDPWD", "SHLVL", "_"}} == {
        f"CUDA_MPS_PIPE_DIRECTORY={tmp_path}/mps/nvidia.com/gpu.shared/pipe",
        f"CUDA_MPS_LOG_DIRECTORY={tmp_path}/mps/nvidia.com/gpu.shared/log",
    }


async def test_a_daemon_that_is_not_there_is_told_with_its_directory(tmp_path: Path) -> None:
    told = await control(tmp_path, "exit 1").trouble("nvidia.com/gpu")
    assert told is not None
    assert f"no MPS control daemon answers at {tmp_path}/mps/nvidia.com/gpu/pipe (exit code 1" in told


async def test_a_daemon_that_hangs_is_told_and_the_program_is_killed(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; sleep 600"
    asking = control(tmp_path, script, seconds=2.0)
    told = await asking.trouble("nvidia.com/gpu")
    assert told is not None
    assert "gives no answer in 2 s" in told
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_who_stops_waiting_leaves_no_program_behind(tmp_path: Path) -> None:
    waiting = asyncio.create_task(control(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600").trouble("nvidia.com/gpu"))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = await MpsControl(tmp_path, find=lambda _name: None).trouble("nvidia.com/gpu")
    assert told is not None
    assert f"{CONTROL_PROGRAM} is not in the PATH" in told


async def test_a_program_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    told = await MpsControl(tmp_path, find=lambda _name: str(tmp_path)).trouble("nvidia.com/gpu")
    assert told is not None
    assert "cannot be run: Permission denied" in told
