"""Names of extended resources, by the rules of v0.20.0.

Every resource is `nvidia.com/<short name>`; the prefix is added where it is missing. The short name is a lower-case
DNS-1123 subdomain, and the whole is at most 63 bytes.
"""

import re

PREFIX = "nvidia.com/"
SHARED_SUFFIX = ".shared"
"""What renameByDefault puts behind the name of a shared resource."""

_MOST = 63
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SHORT = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


def resource_name(text: str) -> str:
    """The full name for `text`, with or without the prefix. Raises ValueError with the rule that it breaks."""
    prefix, slash, _ = text.partition("/")
    if slash and not text.startswith(PREFIX):
        raise ValueError(f"{text!r} is not a resource name: the prefix has to be {PREFIX}, not {prefix}/")
    name = text if text.startswith(PREFIX) else PREFIX + text
    short = name.removeprefix(PREFIX)
    if not _SHORT.fullmatch(short):
        raise ValueError(
            f"{text!r} is not a resource name: behind {PREFIX} only lower-case letters, digits, '-' and '.' may stand, "
            "with a letter or digit at both ends of each part"
        )
    if len(name) > _MOST:
        raise ValueError(f"{text!r} is not a resource name: {name} has {len(name)} characters, more than {_MOST}")
    return name
