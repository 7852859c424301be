"""Hard rules for the slots of one request: all on distinct GPUs, or all on one.

A policy prefers; a rule forbids. The preference keeps a rule by limiting what a policy may take, where an answer that
keeps it exists at all. Kubelet need not follow the preference, so whoever answers Allocate asks `violation` again.
"""

from collections.abc import Iterator, Sequence

from gpustow.placement.policy import Rule
from gpustow.placement.state import State
from gpustow.resources.device import Device


def violation(rule: Rule, devices: Sequence[Device]) -> str | None:
    """What is wrong with handing out these devices together under a rule; None if nothing is."""
    on_gpu: dict[int, list[str]] = {}
    for device in devices:
        on_gpu.setdefault(device.gpu_index, []).append(device.id)
    if rule is Rule.DISTINCT:
        for gpu, ids in on_gpu.items():
            if len(ids) > 1:
                return (
                    f"{len(ids)} of the devices ({', '.join(sorted(ids))}) lie on GPU {gpu}, "
                    "and the resource requires distinct GPUs for the devices of a request"
                )
    elif len(on_gpu) > 1:
        return (
            f"the devices lie on GPUs {', '.join(map(str, sorted(on_gpu)))}, "
            "and the resource requires the devices of a request to lie together on one GPU"
        )
    return None


def _distinct(state: State) -> Iterator[State]:
    """At most one slot on each GPU, must-include's among them."""
    if max(state.must, default=0) <= 1:
        yield state.limited(tuple(min(limit, 1 - must) for limit, must in zip(state.limit, state.must, strict=True)))


def _together(state: State) -> Iterator[State]:
    """Everything on one GPU: one state for each that could be it."""
    must_mask = state.must_mask
    for position, bit in enumerate(state.fabric.bits):
        if not must_mask & ~bit:
            yield state.limited(tuple(limit if at == position else 0 for at, limit in enumerate(state.limit)))


def states_within(rule: Rule | None, state: State) -> list[State]:
    """The states whose answers keep the rule; the state itself where there is no rule, or no answer that keeps it."""
    if rule is None:
        return [state]
    limited = _distinct(state) if rule is Rule.DISTINCT else _together(state)
    return [within for within in limited if sum(within.limit) >= state.wanted] or [state]
