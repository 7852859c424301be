from gpustow.hardware.nvml.findings import Findings


def test_the_same_trouble_of_several_gpus_is_told_once() -> None:
    findings = Findings()
    findings.add("GPU 0", "memory cannot be read: Unknown Error (call)")
    findings.add("GPU 1", "left out")
    findings.add("GPU 1", "memory cannot be read: Unknown Error (call)")
    findings.add("GPU 1", "memory cannot be read: Unknown Error (call)")
    findings.lost(3)
    findings.lost(2)
    findings.lost(3)
    assert findings.notes() == (
        "GPU 2 is lost: it is left out",
        "GPU 3 is lost: it is left out",
        "GPU 0, GPU 1: memory cannot be read: Unknown Error (call)",
        "GPU 1: left out",
    )
