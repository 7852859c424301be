"""An address to listen at: `HOST:PORT`, or `:PORT` for all addresses of the machine.

The host is a name or an address; one of IPv6 stands in brackets, `[::1]:9402`. Port 0 is any that is free.
"""

import re

_PORT = r"(?:\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])"
ADDRESS_PATTERN = rf"(?:|(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):{_PORT})"
"""Empty is no address."""


def split_address(address: str) -> tuple[str | None, int]:
    """Host and port of an address that is not empty; no host is all addresses. Raises ValueError if it is none."""
    if not address or not re.fullmatch(ADDRESS_PATTERN, address):
        raise ValueError(f"{address!r} is not HOST:PORT or :PORT")
    host, _, port = address.rpartition(":")
    return host.strip("[]") or None, int(port)
