"""The page on configuration, docs/configuration.md: what the tables know, in words for people.

    python -m gpustow.config.page > docs/configuration.md

writes it anew.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from gpustow.config.healthpage import health_section
from gpustow.config.setting import Kind, Setting
from gpustow.config.settings import FEATURE_SETTINGS, SETTINGS

EXAMPLE = """\
version: v1
flags:
  migStrategy: mixed                       # MIG devices as nvidia.com/mig-<profile>
  plugin:
    sharedDevicesAllocationPolicy: packed  # keep whole GPUs free
gpus:
  exclude: ["0000:81:00.0"]                # leave this one alone
resources:
  gpus:
  - pattern: "*A100*"                      # GPUs of this model are another resource
    name: nvidia.com/a100
sharing:
  timeSlicing:
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/a100                # A100 number 1, into eight replicas under a name of their own
      devices: ["1"]
      rename: nvidia.com/a100.shared
      replicas: 8
    - name: nvidia.com/mig-1g.10gb         # all MIG devices of this profile, into two each
      replicas: 2
placement:
  resources:
  - name: nvidia.com/a100.shared           # a policy for one resource
    policy: spread
"""
"""A file with every section that v0.20.0 has for devices, and ours."""

_INTRO = """\
# Configuration

gpustow takes the flags, the environment variables and the configuration file of NVIDIA's device plugin v0.20.0. A flag
wins over the environment, that over the file, and that over the default. Where gpustow differs on purpose is told in
[compatibility.md](compatibility.md).

Before a daemon finds out:

| command | what it does |
|---|---|
| `gpustow config check FILE [--node-model NAME]` | tells what is wrong or idle in a file, and what a node would offer |
| `gpustow config show [FLAGS]` | prints what holds here and where it comes from; the daemon logs it at its start |
| `gpustow config schema` | prints the JSON schema of the file |

## Settings
"""

_RULES = """\
### How values are written

- On the command line one dash or two; the value behind `=` or as the next word. A boolean alone is true; false is
  `--flag=false`. What follows the first word that is no flag is ignored, with a warning.
- Booleans in flags and environment: `1 t T TRUE true True`, `0 f F FALSE false False`. In the file: YAML's booleans.
- Lists in flags and environment: separated by commas; flags may be repeated. In the file: a YAML list, or one text.
- A variable that is set and empty counts as set: to false, to the empty text, to a list with one empty item. Numbers
  and durations are then left alone.
- Durations: `300ms`, `1h30m`, or `infinite`; in the file a number of nanoseconds as well, except below `health`, where
  a unit is needed.
- YAML is read as Go's library reads it: `1:0` is a text (a MIG index), `0777` is octal, `yes` and `on` are true, a date
  is a text. `null` counts as absent. A key in another case holds, with a warning, except below `timeSlicing`, `mps` and
  in entries of lists.
- A key that is unknown, misplaced or doubled is told with its path and the key that was probably meant;
  `--strict-config` refuses the file instead.

## The file
"""

_SECTIONS = """\
### Sharing

`sharing.timeSlicing` or `sharing.mps`, not both:

| key | meaning | default |
|---|---|---|
| `renameByDefault` | shared resources are called `<name>.shared` | false |
| `failRequestsGreaterThanOne` | a request for more than one shared device is refused | false; true under `mps` |
| `resources[].name` | the resource whose devices are shared; `nvidia.com/` is added where it is missing | |
| `resources[].replicas` | how many devices each becomes, 2 or more. To switch sharing off, leave the section out | |
| `resources[].devices` | `all`, a number, or a list of indices (`0`, MIG `0:1`) and UUIDs | `all` |
| `resources[].rename` | the name of the replicas' resource | the same name |

Several entries may name one resource and choose different devices of it. A device that two entries choose, or that the
node does not have, is refused by name. Lists are dealt out first; a number takes what they leave, lowest index first.

MPS is not for GPUs in MIG mode, nor for integrated ones; a GPU takes 48 clients, before compute capability 7.5 16. It
needs `mpsRoot`.

### What a container gets

`deviceListStrategy` is any set of these; each adds what one kind of container runtime reads:

| strategy | what is put in | who reads it |
|---|---|---|
| `envvar` | `NVIDIA_VISIBLE_DEVICES` and `NVIDIA_IMEX_CHANNELS` | NVIDIA's container runtime |
| `volume-mounts` | mounts of `/dev/null` that are named like the devices | the same, if it accepts them |
| `cdi-annotations` | an annotation with the names of CDI devices | containerd 1.7, CRI-O 1.24, and newer |
| `cdi-cri` | the same names in a field of the CRI | containerd 1.7.2, CRI-O 1.28, and newer |

A pod can set the variable of `envvar` itself and so see GPUs that it did not ask for; the other ways are closed to it.
NVIDIA's container runtime accepts mounts from version 1.3 of its toolkit on, if its configuration has
`accept-nvidia-visible-devices-as-volume-mounts = true`. containerd 1.7 has CDI off unless it is told otherwise, and
then starts a container without its GPU and without a word.

For the CDI strategies the plugin writes specifications into `cdi.directory`, so the host's directory of that name is
mounted, writable. It finds the driver's files where the host's `nvidiaDriverRoot` is mounted (`containerDriverRoot`),
and hooks run the program `nvidiaCTKPath` on the host. What it does not find is told in the log.

With a strategy that is not CDI, `passDeviceSpecs` passes the device nodes as well, from below `nvidiaDevRoot`. The
settings `gdrcopyEnabled`, `gdsEnabled` and `mofedEnabled` put in the variables `NVIDIA_GDRCOPY`, `NVIDIA_GDS` and
`NVIDIA_MOFED`, and with CDI the names of those devices. A container with a device of a resource that is shared by MPS
is connected to the control daemon below `mpsRoot`. `gpustow allocate` shows all of it for a node and a configuration.

### Names

`resources.gpus` and `resources.mig` are lists of `pattern` and `name`: GPUs whose model, and MIG devices whose profile
(`1g.10gb+me`), matches the pattern as a whole belong to the resource of that name. `*` is any run of characters. The
first pattern counts; what none matches keeps the name that it has without patterns.

### Which GPUs

`gpus.select` serves some GPUs only, `gpus.exclude` leaves some alone. Each is a list of indices, UUIDs, PCI bus ids and
patterns of models. What is left out is left out of everything, before sharing. A container that has such a GPU from
before keeps it.

A `NVIDIA_VISIBLE_DEVICES` in the plugin's own environment that lists GPUs selects as well, where the container sees
more GPUs than it lists, as a privileged one does.

### Placement

`placement.resources` is a list of policies and rules for single resources, by the name under which they are offered:
`name`, and any of `policy`, `cap` (with `packed`), `distinct: required`, `together: required`. See
[policies.md](policies.md).
"""

_FEATURES = """\
### Feature discovery

The file is shared with feature discovery, which reads these keys; the plugin only checks them.
"""


def configuration_page() -> str:
    """The page, as Markdown."""
    lines = [
        _INTRO,
        *_table(SETTINGS),
        "",
        _RULES,
        f"```yaml\n{EXAMPLE}```\n",
        _SECTIONS,
        health_section(),
        _FEATURES,
        *_keys(FEATURE_SETTINGS),
    ]
    return "\n".join(lines) + "\n"


def _table(settings: Iterable[Setting]) -> Iterator[str]:
    yield "| flag | environment | key in the file | default | what it does |"
    yield "|---|---|---|---|---|"
    for setting in settings:
        flags = _code([f"--{name}" for name in setting.names])
        yield _row(flags, _code(setting.envs), _code([setting.key]), _default(setting), _what(setting))


def _keys(settings: Iterable[Setting]) -> Iterator[str]:
    yield "| key in the file | default | what it does |"
    yield "|---|---|---|"
    for setting in settings:
        yield _row(_code([setting.key]), _default(setting), _what(setting))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words if word)


def _default(setting: Setting) -> str:
    shown = setting.shown(setting.default)
    return "empty" if shown in {"[]", '""'} else f"`{shown}`"


def _what(setting: Setting) -> str:
    choice = f" One of {_code(setting.allowed)}." if setting.allowed and setting.kind is not Kind.TEXTS else ""
    choice = f" Any of {_code(setting.allowed)}." if setting.allowed and setting.kind is Kind.TEXTS else choice
    return f"{setting.help}{choice}"


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
