"""What is said of a node that is simulated, so that nobody takes it for a real one."""

from gpustow.config import Config


def assumptions(config: Config) -> tuple[str, ...]:
    """What a node model cannot tell of and a simulated node has therefore, if the configuration asks for it."""
    asked = {
        f"IMEX channel {', '.join(map(str, config.imex_channel_ids))}": config.imex_channel_ids,
        "GDRCopy's device": config.gdrcopy_enabled,
        "the devices of GPUDirect Storage": config.gds_enabled,
        "the InfiniBand devices": config.mofed_enabled,
        "the MPS control daemons": config.mps is not None,
    }
    things = [thing for thing, wanted in asked.items() if wanted]
    return (f"a simulated node is taken to have {', '.join(things)}",) if things else ()
