"""The words of labels: products and families of GPUs, as gpu-feature-discovery v0.20.0 writes them.

A label's value may have 63 characters: letters, digits, `-`, `_` and `.`, and it begins and ends with a letter or
digit. What v0.20.0 writes can be more and other than that for strange names; it is written here all the same, since
others match on it, and `is_label_value` tells.
"""

import re

SHARED_SUFFIX = "SHARED"
"""The last part of the product of a resource that is shared under its own name."""

_STRANGE = re.compile(r"[^A-Za-z0-9\-_. ]")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9\-_.]{0,61}[A-Za-z0-9])?)?")

_FAMILIES = {
    1: "tesla",
    2: "fermi",
    3: "kepler",
    5: "maxwell",
    6: "pascal",
    9: "hopper",
    10: "blackwell",
    12: "blackwell",
    13: "rubin",
}
"""By the major number of the compute capability; 7 and 8 are two families each."""


def sanitised(text: str) -> str:
    """`text` without what a label cannot hold: other characters are dropped, runs of spaces become a dash."""
    return "-".join(filter(None, _STRANGE.sub("", text).split(" ")))


def product(*parts: str) -> str:
    """The name of a product made of these parts, each sanitised; those of which nothing is left are skipped."""
    return "-".join(part for part in map(sanitised, parts) if part)


def family(compute_capability: tuple[int, int]) -> str:
    """The family of GPUs with this compute capability; `undefined` where none is known."""
    major, minor = compute_capability
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return _FAMILIES.get(major, "undefined")


def is_label_value(text: str) -> bool:
    """Whether Kubernetes takes `text` as the value of a label."""
    return _VALUE.fullmatch(text) is not None
