"""What is simulated where nobody says otherwise: the first scenario, and the defaults around any other.

The first scenario shows in one look what the policies are for: four GPUs cut into five MIG devices each, and three pods
that ask for one. Around another node, or other pods, the rest is filled in so that something is to be seen: MIG devices
are served as such although the plugin's own default leaves them unused, and the pods ask for what the node has.

Limits: with a configuration file, that file alone decides.
"""

from gpustow.config import load_config
from gpustow.errors import ConfigError, HardwareError
from gpustow.hardware.node import Node
from gpustow.resources import build_catalog
from gpustow.simulation.workload import Workload, parse_workload

FIRST_NODE_MODEL = "a100-4-mig-5"

FIRST_POLICIES = ("distributed", "packed")
"""v0.20.0's default, and the one that leaves GPUs free."""

_MIG_FLAG = "mig-strategy"


def default_flags(node: Node) -> dict[str, object]:
    """The plugin's flags for a node: MIG strategy single where its MIG devices are all alike, mixed where not."""
    if not any(gpu.mig_enabled for gpu in node.gpus):
        return {}
    try:
        build_catalog(node, load_config({_MIG_FLAG: "single"}, {}).config)
    except (ConfigError, HardwareError):
        return {_MIG_FLAG: "mixed"}
    return {_MIG_FLAG: "single"}


def three_pods(resource: str) -> Workload:
    """Three pods, one after the other, each asking for one device of a resource."""
    text = f"""
pods:
  - name: pod
    count: 3
    limits:
      {resource}: 1
"""
    return parse_workload(text, "built in")
