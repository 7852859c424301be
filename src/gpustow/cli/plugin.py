"""`gpustow plugin`, also installed as `nvidia-device-plugin`: the daemon that serves a node's devices to kubelet.

The flags come from the table of settings, so that flag, environment, file and help cannot tell different stories. What
is given on the command line is passed on as text; what it means, and what the environment and the file say beside it,
is the configuration's business, anew at each reload.
"""

import asyncio
import gc
import inspect
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import typer

from gpustow.cli.arguments import rewrite, tell_ignored
from gpustow.cli.logs import LogFormat, LogLevel, set_up_logs
from gpustow.cli.nodeaccess import NodeAccess, node_access
from gpustow.cli.options import HELP_FLAGS, PLUGIN_OPTIONS, own_flags
from gpustow.cli.settingflags import SETTING_FLAGS, given_settings, keyword, setting_parameters
from gpustow.cli.simulatednode import assumptions
from gpustow.config import LoadedConfig, load_config
from gpustow.errors import GpustowError

log = logging.getLogger(__name__)

_HELP = """Serves this node's GPUs to kubelet, until SIGTERM. SIGHUP reads configuration and node again.

Takes the flags, environment variables and configuration file of NVIDIA's device plugin v0.20.0. A flag wins over the
environment, that over the file, and that over the default.

\b
Examples:
  gpustow plugin --mig-strategy=mixed --shared-devices-allocation-policy=packed
  gpustow plugin --config-file=/config/config.yaml --log-format=json
  gpustow plugin --node-model=a100-4-mig-5 --kubelet-socket=/tmp/kubelet/kubelet.sock
"""


def prepare(words: Sequence[str]) -> Sequence[str]:
    """The words after the command's name in the one form that the command library takes; tells what is ignored.

    Raises UsageError.
    """
    line = rewrite(words, [*SETTING_FLAGS, *own_flags()])
    tell_ignored(line)
    return line.words


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("plugin", help=_HELP, context_settings=HELP_FLAGS)(_command())


def _command() -> Any:
    """The function of the command, with a parameter for each setting, which the command library reads."""

    def command(**given: Any) -> None:
        access = partial(node_access, given["node_model"], os.environ, given["system_root"])
        serve(given_settings(given), access, given["log_format"], given["log_level"])

    parameters = [
        *setting_parameters(),
        *(keyword(name, annotation, default) for name, (annotation, default) in PLUGIN_OPTIONS.items()),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # functions may carry one
    return command


def _loaded(flags: dict[str, object], *, simulated: bool) -> LoadedConfig:
    """The configuration, with what is assumed of a simulated node among its warnings."""
    loaded = load_config(flags, os.environ)
    return replace(loaded, warnings=(*loaded.warnings, *assumptions(loaded.config))) if simulated else loaded


def serve(
    flags: dict[str, object],
    access: Callable[[], NodeAccess],
    log_format: LogFormat,
    log_level: LogLevel,
) -> None:
    """Runs the daemon for the node that `access` leads to. Whatever ends it is its last log line.

    The exit code is that of the error; for a fault of ours it is 1, and the line has the traceback.
    """
    set_up_logs(log_format, log_level)
    try:
        node = access()
        if node.simulated is not None:
            log.warning("the node is simulated, by node model %s: its GPUs are not there", node.simulated)
        # Only now: none of it is needed to find that the node model is bad.
        from gpustow.plugin import Supervisor  # noqa: PLC0415 - see above
        from gpustow.plugin.signals import run_with_signals  # noqa: PLC0415 - see above

        supervisor = Supervisor(
            lambda: _loaded(flags, simulated=node.simulated is not None),
            node.make_reader,
            read_host=node.read_host,
            make_specs=node.make_specs,
            make_source=node.make_source,
            traces=node.traces,
            mps_trouble=node.mps_trouble,
            nvml_counts=node.nvml_counts,
        )
        gc.freeze()  # what the imports made stays: to look through it for garbage takes 20 ms, in some call of kubelet
        asyncio.run(run_with_signals(supervisor))
    except GpustowError as error:
        log.critical("%s", error)
        sys.exit(error.exit_code)
    except Exception as error:
        log.critical("a fault of ours ends it: %r", error, exc_info=True)
        sys.exit(1)
