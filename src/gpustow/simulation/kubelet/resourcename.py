"""Which names kubelet takes for the resource of a plugin.

The rules are those of Kubernetes for extended resource names: the name has a domain, is not one of Kubernetes' own,
and is a qualified name also with `requests.` in front of it, as quotas write it.
"""

import re

QUOTA_PREFIX = "requests."
NATIVE_DOMAIN = "kubernetes.io/"
LONGEST_DOMAIN = 253
LONGEST_NAME = 63

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_extended_resource_name(name: str) -> bool:
    """Whether kubelet registers a plugin for a resource of that name."""
    if "/" not in name or NATIVE_DOMAIN in name or name.startswith(QUOTA_PREFIX):
        return False
    domain, _, local = f"{QUOTA_PREFIX}{name}".partition("/")
    if len(domain) > LONGEST_DOMAIN or len(local) > LONGEST_NAME:
        return False
    return _DOMAIN.fullmatch(domain) is not None and _NAME.fullmatch(local) is not None
