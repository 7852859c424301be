"""Whether the MPS control daemon of a resource answers.

A container that is connected to MPS and finds no daemon there has no CUDA at all. So a resource that is shared by MPS
is offered only once its daemon answers. It is asked as k8s-device-plugin v0.20.0 asks it: NVIDIA's control program is
run with the daemon's directories in its environment and nothing else, and is given one harmless command. The
directories of all daemons are mounted in our own container where they are in those that get a share.

Limits: that the daemon answers says nothing about the limits that it should have set; and one that dies later is
noticed only when the resource registers again.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from gpustow.injection.mpsclient import MPS_DIRECTORY, PIPE_DIRECTORY

LOG_DIRECTORY = "CUDA_MPS_LOG_DIRECTORY"
"""Where the control program finds the logs of its daemon."""

CONTROL_PROGRAM = "nvidia-cuda-mps-control"
"""NVIDIA's program; it comes with the driver."""

_QUESTION = b"get_default_active_thread_percentage"


class MpsControl:
    """Asks the MPS control daemons below `root`; each has `seconds` to answer. `find` looks up a program's path."""

    def __init__(
        self,
        root: Path = Path(MPS_DIRECTORY),
        *,
        seconds: float = 5.0,
        find: Callable[[str], str | None] = shutil.which,
    ) -> None:
        self._root = root
        self._seconds = seconds
        self._find = find

    async def trouble(self, resource: str) -> str | None:
        """Why the daemon of the resource does not answer; None if it does."""
        program = self._find(CONTROL_PROGRAM)
        if program is None:
            return f"{CONTROL_PROGRAM} is not in the PATH: the driver's programs must be mounted into our container"
        pipe = self._root / resource / "pipe"
        environment = {
            PIPE_DIRECTORY: str(pipe),
            LOG_DIRECTORY: str(self._root / resource / "log"),
        }
        try:
            code = await self._ask(program, environment)
        except TimeoutError:
            return f"the MPS control daemon at {pipe} gives no answer in {self._seconds:g} s"
        except OSError as error:
            return f"{program} cannot be run: {error.strerror or error}"
        return None if code == 0 else f"no MPS control daemon answers at {pipe} (exit code {code} of {program})"

    async def _ask(self, program: str, environment: dict[str, str]) -> int:
        process = await asyncio.create_subprocess_exec(
            program,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._seconds):
                await process.communicate(_QUESTION)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, 9)
                await process.wait()
        return process.returncode if process.returncode is not None else -1
