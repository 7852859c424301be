"""Asks a running daemon for the status of its node, over the address that `--metrics-address` made it listen at.

Written for daemons of ours and for whatever else may listen at an address: no proxies, no redirects, a limit on time
and size, and an error that says what to do for each way in which no status comes back.
"""

import json
from http.client import HTTPConnection, HTTPException
from typing import Any

from gpustow.config.address import split_address
from gpustow.errors import DaemonError, UsageError

PATH = "/api/v1/node"

SECONDS = 10.0
"""How long each step of the exchange may take."""

MOST_BYTES = 64 << 20
"""More than the status of a node with thousands of replicas by far."""

_EVERYWHERE = {None: "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - told apart, not listened at

_LISTEN = "Start it with --metrics-address (GPUSTOW_METRICS_ADDRESS), and give that address to --address here."
_OTHER = "Something else seems to listen there: give the address of the daemon's --metrics-address to --address."


def fetch_status(address: str, seconds: float = SECONDS) -> Any:
    """The status as JSON has it, from the daemon at HOST:PORT; `:PORT` is this machine.

    Raises UsageError for an address that is none, DaemonError if no status is to be had.
    """
    try:
        host, port = split_address(address)
    except ValueError as error:
        raise UsageError(f"--address: {error}", advice="Give the one that the daemon listens at.") from error
    body = _body(address, HTTPConnection(_EVERYWHERE.get(host, host) or "", port, timeout=seconds))
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DaemonError(address, "what answers sends no JSON", advice=_OTHER) from error


def _body(address: str, connection: HTTPConnection) -> bytes:
    try:
        connection.request("GET", PATH, headers={"Accept": "application/json"})
        response = connection.getresponse()
        body = response.read(MOST_BYTES + 1)
    except TimeoutError as error:
        raise DaemonError(address, "no answer in time", advice="The daemon's log says what it is at.") from error
    except ConnectionRefusedError as error:
        raise DaemonError(address, "nobody listens there", advice=_LISTEN) from error
    except HTTPException as error:
        raise DaemonError(address, "what answers does not speak HTTP", advice=_OTHER) from error
    except OSError as error:
        raise DaemonError(address, f"it cannot be reached: {error.strerror or error}", advice=_LISTEN) from error
    finally:
        connection.close()
    if response.status != 200:
        raise DaemonError(address, f"the answer is {response.status} {response.reason}", advice=_OTHER)
    if len(body) > MOST_BYTES:
        raise DaemonError(address, f"the answer is larger than {MOST_BYTES >> 20} MiB", advice=_OTHER)
    return body
