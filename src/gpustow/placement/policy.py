"""The names of the ways to choose, and what an operator may add to one.

`aligned` is not in the list that an operator chooses from: whole GPUs always get it, and nothing else does.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from gpustow.errors import UsageError


class PolicyName(Enum):
    """The policies, by the names that configuration and reports use."""

    DISTRIBUTED = "distributed"
    PACKED = "packed"
    SPREAD = "spread"
    PACKED_ALIGNED = "packed-aligned"
    ALIGNED = "aligned"


SHARED_POLICIES = tuple(name.value for name in PolicyName if name is not PolicyName.ALIGNED)
"""What an operator can choose for shared and MIG devices; the first is the default."""


class Rule(Enum):
    """A hard rule for the slots of one request. The preference tries to keep it; Allocate refuses what breaks it."""

    DISTINCT = "distinct"
    TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose: the policy, for `packed` a cap, and a hard rule if there is one.

    `cap` bounds the used slots of the resource on a GPU: none goes above it while another GPU that can take a slot is
    below. 1 is the most even, None the most packed.
    """

    name: PolicyName
    cap: int | None = None
    rule: Rule | None = None

    @classmethod
    def named(cls, name: str, *, cap: int | None = None, rule: Rule | None = None) -> Self:
        """The policy that an operator chose by name; raises UsageError for a name, or a cap, that does not exist."""
        if name not in SHARED_POLICIES:
            raise UsageError(f"unknown policy {name!r}", advice=f"Choose one of {', '.join(SHARED_POLICIES)}.")
        if cap is not None:
            if name != PolicyName.PACKED.value:
                raise UsageError(f"policy {name} takes no cap", advice="Only packed does.")
            if cap < 1:
                raise UsageError(f"cap {cap} is below 1")
        return cls(PolicyName(name), cap, rule)


ALIGNED = Policy(PolicyName.ALIGNED)
"""What whole GPUs are placed by."""
