"""The rule for shared devices of NVIDIA/k8s-device-plugin v0.20.0, written plainly from its description.

For each device still to pick, all candidates are sorted: by how much of their GPU is allocated (fewest first for
distributed, most first for packed), then by how often this call has picked from that GPU; the first one is taken. What
is left equal falls to the order of the candidates, which there comes out of a map and here out of a generator.
"""

from collections.abc import Sequence
from random import Random


def plain_greedy(policy: str, totals: dict[str, int], available: Sequence[str], size: int, rng: Random) -> list[str]:
    """The ids chosen, nothing being required; `totals` are the replicas of each GPU, by the id before `::`."""
    candidates = list(available)
    if len(candidates) < size:
        raise ValueError("not enough available devices")
    rng.shuffle(candidates)
    left: dict[str, int] = {}
    for id_ in candidates:
        gpu = id_.partition("::")[0]
        left[gpu] = left.get(gpu, 0) + 1
    allocated = {gpu: totals[gpu] - count for gpu, count in left.items()}
    picked = dict.fromkeys(left, 0)
    sign = -1 if policy == "packed" else 1
    chosen = []
    for _ in range(size):
        candidates.sort(key=lambda id_: (sign * allocated[id_.partition("::")[0]], picked[id_.partition("::")[0]]))
        first = candidates.pop(0)
        gpu = first.partition("::")[0]
        allocated[gpu] += 1
        picked[gpu] += 1
        chosen.append(first)
    return chosen
