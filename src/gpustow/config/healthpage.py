"""The part of the page on configuration that is about the section `health`."""

from gpustow.config.faultrule import written_seconds
from gpustow.config.health import HealthConfig, RecoveryConfig

EXAMPLE = """\
health:
  xidPolicy: catalogue                     # by the table of `gpustow xid`, not by v0.20.0's six
  xids: {94: 2 in 24h, 109: fatal}         # but these as we see them
  events: {rowRemapPending: fatal}         # no new pods on a GPU that waits for a repair
  recovery: {holdTime: 10m}
"""
"""A section that says a bit of everything."""

_INTRO = f"""\
### Health

`health` says which faults make a device unfit, and when it is fit again. A rule is `ignore`, `fatal`, or a number of
faults in a time, such as `3 in 24h`; faults of one kind that follow each other within 5 s count as one.

```yaml
{EXAMPLE}```

| key | meaning | default |
|---|---|---|
"""

_POLICY = (
    "the rules of XIDs that are not listed: `compatible` is v0.20.0's (13, 31, 43, 45, 68 and 109 are ignored, all "
    "others are fatal); `catalogue` is that of `gpustow xid`, and asks GPUs what they need: at the start, after XIDs, "
    "from time to time"
)

_STATES = (
    "`fatal` or `ignore`: a row could not be remapped; the SRAM has had too many errors; the driver wants a reset, a "
    "reboot or the like"
)

_END = """
A fault of a GPU makes all its MIG devices unfit. One that names a GPU instance makes those of that instance unfit,
under `compatible` whatever the XID is. Under `catalogue` that holds for what stays within an instance: faults of
applications and engines, the echoes of other faults, and XID 94. A fault of another class, such as XID 48, is about the
whole GPU, even if it names an instance; the log says so ("XID 48 is about the whole GPU"). `gpustow xid` shows the
class of each.

A device is well when its GPU can be read under its UUID, wants no recovery action, has no row remap or page retirement
that is pending or failed, and has not had too many errors in its SRAM. A GPU that was lost must have been found again
besides.

Two variables of v0.20.0 win over the section. `DP_DISABLE_HEALTHCHECKS` lists XIDs that are ignored; `all` switches
health checks off. `DP_ENABLE_HEALTHCHECKS` lists XIDs that are fatal, and wins over the other.
"""


def health_section() -> str:
    """The text, as Markdown."""
    return _INTRO + "".join(f"| {keys} | {meaning} | {default} |\n" for keys, meaning, default in _rows()) + _END


def _rows() -> tuple[tuple[str, str, str], ...]:
    health, recovery = HealthConfig(), RecoveryConfig()
    return (
        (
            "`xidPolicy`",
            _POLICY,
            f"`{health.xid_policy.value}`",
        ),
        ("`xids`", "rules by the number of the XID: `{94: 3 in 24h, 31: ignore}`", ""),
        ("`unknownXids`", "the rule of XIDs that are in no table", f"`{health.unknown_xids}`"),
        (
            "`events.eccSingleBit`, `events.eccDoubleBit`",
            "the rule of a memory error that was corrected, or could not be",
            "`ignore`; `eccDoubleBit` is `fatal` under `catalogue`",
        ),
        (
            "`events.rowRemapFailure`, `events.sramThreshold`, `events.recoveryAction`",
            _STATES,
            "`ignore`; `fatal` under `catalogue`",
        ),
        (
            "`events.rowRemapPending`, `events.pageRetirementPending`",
            "`fatal` or `ignore`: a repair waits for the next reset",
            "`ignore`",
        ),
        (
            "`events.unwatched`",
            "`fatal` or `ignore`: a GPU cannot be read, or not watched although its model can be",
            "`fatal`",
        ),
        (
            "`checkInterval`",
            "how often unfit GPUs are asked whether they are well, and all GPUs for states that are not ignored",
            f"`{written_seconds(health.check_interval)}`",
        ),
        (
            "`rescanInterval`",
            "how often the node is read again; `infinite` for never",
            f"`{written_seconds(health.rescan_interval or 0)}`",
        ),
        ("`recovery.enabled`", "unfit devices become fit again without a restart", "true"),
        (
            "`recovery.holdTime`",
            "how long a device must have been well and quiet",
            f"`{written_seconds(recovery.hold_time)}`",
        ),
        (
            "`recovery.unknownIsProof`",
            "what a GPU cannot tell counts as well; without this, models that know no recovery action stay unfit",
            "false",
        ),
        (
            "`recovery.flapCount`, `recovery.flapWindow`",
            "a device that becomes unfit so often in this time is held longer",
            f"{recovery.flap_count}, `{written_seconds(recovery.flap_window)}`",
        ),
        (
            "`recovery.flapHoldTime`",
            "how long it must have been well and quiet then",
            f"`{written_seconds(recovery.flap_hold_time)}`",
        ),
    )
