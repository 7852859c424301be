"""Where our labels are not those of v0.20.0's feature discovery under the same file, which can run beside us.

It reads the file as v0.20.0's plugin does: what that checks and drops has no effect on its labels, and holds here.
"""

from gpustow.config import Config


def label_differences(config: Config) -> tuple[str, ...]:
    """What to tell of a configuration under which they differ."""
    keys = [
        key
        for kind, shared in (("timeSlicing", config.time_slicing), ("mps", config.mps))
        if shared is not None
        for key, acts in (
            (
                f"sharing.{kind}.resources[].rename",
                not shared.rename_by_default and any(r.rename for r in shared.resources),
            ),
            (f"sharing.{kind}.resources[].devices", any(r.devices != "all" for r in shared.resources)),
        )
        if acts
    ]
    keys += [
        f"resources.{kind}"
        for kind, patterns in (("gpus", config.gpu_patterns), ("mig", config.mig_patterns))
        if patterns
    ]
    if not keys:
        return ()
    dropped = ", ".join(keys)
    return (f"v0.20.0's feature discovery drops {dropped}: beside gpustow, it would give the node other labels",)
