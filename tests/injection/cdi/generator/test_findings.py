"""What is told of what was not found."""

from gpustow.injection.cdi.generator.findings import Findings


def test_names_are_gathered_by_what_they_are_names_of() -> None:
    findings = Findings("/driver")
    findings.missing("programs", ["nvidia-smi"])
    findings.missing("sockets", ["a/socket"])
    findings.missing("programs", ["nvidia-imex", "nvidia-smi"])
    findings.missing("nothing", [])
    findings.warn("something else")
    findings.warn("something else")
    assert findings.warnings == ("something else",)
    assert findings.left_out == (
        "not found below /driver: programs nvidia-smi, nvidia-imex",
        "not found below /driver: sockets a/socket",
    )


def test_of_very_many_names_the_first_are_told_and_how_many_there_are() -> None:
    findings = Findings("/")
    findings.missing("files", [str(number) for number in range(116)])
    (sentence,) = findings.left_out
    assert sentence.endswith("14, 15 and 100 more")
