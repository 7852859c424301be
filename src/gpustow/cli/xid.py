"""`gpustow xid`: what an XID in the kernel's log means, and what becomes of a GPU that reports it."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from gpustow.cli.nodepicture import wrapped_columns
from gpustow.cli.options import HELP_FLAGS, Output, OutputForm
from gpustow.cli.plaindata import written
from gpustow.cli.standardoutput import write_out
from gpustow.config.health import XidPolicy
from gpustow.errors import UsageError
from gpustow.health.policy import HealthPolicy
from gpustow.health.xids import Xid, known_xids, nearest_xids

_HELP = """Says what XIDs mean: the numbers by which NVIDIA's driver reports faults to the kernel's log.

Lists all that are known, or tells everything about those that are named. ignore, fatal and 3 in 10m are the rules of
health.xidPolicy in the configuration file: how often an XID may come before its GPU is unhealthy.

\b
Examples:
  gpustow xid
  gpustow xid 79
  gpustow xid 48 94 95 -o json
"""

_MORE = """\
RULE is that of `health.xidPolicy: catalogue`; `compatible`, the default,
ignores 13, 31, 43, 45, 68 and 109, and takes all others for fatal. ACTION is
that of NVIDIA's XID catalogue. `gpustow xid 79` tells more about one."""

_POLICIES = {policy: HealthPolicy(xid_policy=policy) for policy in XidPolicy}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("xid", help=_HELP, context_settings=HELP_FLAGS)(xid)


def xid(
    codes: Annotated[list[str] | None, typer.Argument(metavar="CODE", help="Which XIDs; all if none.")] = None,
    *,
    output: OutputForm = Output.TABLE,
) -> None:
    """The command."""
    rows = [_row(code) for code in codes] if codes else list(known_xids().values())
    if output is Output.TABLE:
        write_out("\n".join(map(_told, rows)) if codes else _table(rows))
    else:
        write_out(written([_data(row) for row in rows], output))


def _row(code: str) -> Xid:
    """The XID that a word names. Raises UsageError."""
    known = known_xids()
    if code.isascii() and code.isdecimal() and int(code) in known:
        return known[int(code)]
    near = [f"{number} ({known[number].name})" for number in nearest_xids(code)]
    advice = f"Did you mean {' or '.join(near)}?" if near else "`gpustow xid` lists those that are known."
    raise UsageError(f"{code!r} is not the number of an XID that is known here", advice=advice)


def _table(rows: Iterable[Xid]) -> str:
    lines = [(str(row.number), str(row.rule), row.kind, _short(row.action), row.meaning) for row in rows]
    return wrapped_columns([("XID", "RULE", "CLASS", "ACTION", "MEANING"), *lines]) + f"\n\n{_MORE}\n"


def _short(action: str) -> str:
    """The action without the name of a workflow, which is long."""
    return "see the catalogue" if action.startswith("check ") else action or "-"


def _told(row: Xid) -> str:
    """Everything about one, a line each."""
    lines = [
        ("meaning", row.meaning),
        ("class", row.kind),
        ("by application", row.application),
        ("advice", row.advice),
        *((f"under {policy.value}", rule) for policy, rule in _rules(row)),
        ("GPUs", _gpus(row)),
        *([("sources", "disagree, state no action, or no longer use it")] if row.disputed else []),
        *([("note", row.note)] if row.note else []),
    ]
    table = wrapped_columns((f"  {label}", text) for label, text in lines)
    return f"XID {row.number}  {row.name}\n{table}\n"


def _rules(row: Xid) -> Sequence[tuple[XidPolicy, str]]:
    return [(policy, str(rules.xid_rule(row.number))) for policy, rules in _POLICIES.items()]


def _gpus(row: Xid) -> str:
    if row.gpus is None:
        return "not in the catalogue"
    return " ".join(row.gpus) or "none of A100, H100, B100 and GB200, by the catalogue"


def _data(row: Xid) -> dict[str, Any]:
    return {
        "xid": row.number,
        "name": row.name,
        "meaning": row.meaning,
        "class": row.kind,
        "rules": {policy.value: rule for policy, rule in _rules(row)},
        "action": row.action or None,
        "follow_up": row.follow_up or None,
        "advice": row.advice,
        "application": row.application,
        "gpus": None if row.gpus is None else list(row.gpus),
        "disputed": row.disputed,
        "note": row.note or None,
    }
