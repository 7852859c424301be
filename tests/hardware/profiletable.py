"""MIG profiles by board: the rows of NVIDIA's MIG user guide and of nvidia-smi listings.

One row: name, id in nvidia-smi, number in NVML's enumeration, compute slices, memory slices, most on one card, places.
"""

Row = tuple[str, int, int, int, int, int, tuple[int, ...]]


def seven(one: str, two: str, four: str, full: str) -> tuple[Row, ...]:
    """The rows of a board with seven compute slices, by the memory in the names."""
    return (
        (f"1g.{one}gb", 19, 0, 1, 1, 7, (0, 1, 2, 3, 4, 5, 6)),
        (f"1g.{one}gb+me", 20, 7, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        (f"1g.{two}gb", 15, 9, 1, 2, 4, (0, 2, 4, 6)),
        (f"2g.{two}gb", 14, 1, 2, 2, 3, (0, 2, 4)),
        (f"3g.{four}gb", 9, 2, 3, 4, 2, (0, 4)),
        (f"4g.{four}gb", 5, 3, 4, 4, 1, (0,)),
        (f"7g.{full}gb", 0, 4, 7, 8, 1, (0,)),
    )


BOARDS: dict[str, tuple[Row, ...]] = {
    "NVIDIA A30": (
        ("1g.6gb", 14, 0, 1, 1, 4, (0, 1, 2, 3)),
        ("1g.6gb+me", 21, 7, 1, 1, 1, (0, 1, 2, 3)),
        ("2g.12gb", 5, 1, 2, 2, 2, (0, 2)),
        ("2g.12gb+me", 6, 8, 2, 2, 1, (0, 2)),
        ("4g.24gb", 0, 3, 4, 4, 1, (0,)),
    ),
    "NVIDIA A100-SXM4-40GB": seven("5", "10", "20", "40"),
    "NVIDIA A100-PCIE-40GB": seven("5", "10", "20", "40"),
    "NVIDIA A100-SXM4-80GB": seven("10", "20", "40", "80"),
    "NVIDIA A100 80GB PCIe": seven("10", "20", "40", "80"),
    "NVIDIA H100 80GB HBM3": seven("10", "20", "40", "80"),
    "NVIDIA H100 PCIe": seven("10", "20", "40", "80"),
    "NVIDIA H100 NVL": seven("12", "24", "47", "94"),
    "NVIDIA GH200 480GB": seven("12", "24", "48", "96"),
    "NVIDIA GH200 144G HBM3e": seven("18", "36", "72", "144"),
    "NVIDIA H200": seven("18", "35", "71", "141"),
    "NVIDIA H200 NVL": seven("18", "35", "71", "141"),
    "NVIDIA B200": seven("23", "45", "90", "180"),
    "NVIDIA GB200": seven("23", "47", "93", "186"),
    "NVIDIA B300 SXM6 AC": seven("34", "67", "135", "269"),
    "NVIDIA GB300": seven("35", "70", "139", "278"),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": (
        ("1g.24gb", 14, 0, 1, 3, 4, (0, 3, 6, 9)),
        ("1g.24gb+me", 21, 7, 1, 3, 1, (0, 3, 6, 9)),
        ("1g.24gb+gfx", 47, 10, 1, 3, 4, (0, 3, 6, 9)),
        ("1g.24gb+me.all", 65, 15, 1, 3, 1, (0, 3, 6, 9)),
        ("1g.24gb-me", 67, 13, 1, 3, 4, (0, 3, 6, 9)),
        ("2g.48gb", 5, 1, 2, 6, 2, (0, 6)),
        ("2g.48gb+gfx", 35, 11, 2, 6, 2, (0, 6)),
        ("2g.48gb+me.all", 64, 16, 2, 6, 1, (0, 6)),
        ("2g.48gb-me", 66, 14, 2, 6, 2, (0, 6)),
        ("4g.96gb", 0, 3, 4, 12, 1, (0,)),
        ("4g.96gb+gfx", 32, 12, 4, 12, 1, (0,)),
    ),
}
