# ruff: noqa: INP001 - a script, not part of a package
"""Regenerates the Python code of the protocols: `python proto/generate.py [target]`, or `make proto`.

The messages come from protoc, their types from mypy-protobuf. The services are not generated: grpcio's generated code
has no types, and gpustow.kubelet.protocol.services says the same in a few typed lines.
"""

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]  # it ships no types

PROTO = Path(__file__).resolve().parent
SOURCE = PROTO.parent / "src"


def generate(target: Path) -> None:
    """Writes `*_pb2.py` and `*_pb2.pyi` of all our proto files below `target`; ends the process if protoc fails."""
    names = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    includes = [f"--proto_path={PROTO}", f"--proto_path={files('grpc_tools') / '_proto'}"]
    outputs = [f"--python_out={target}", f"--mypy_out=quiet:{target}"]
    plugin = f"--plugin=protoc-gen-mypy={Path(sys.executable).with_name('protoc-gen-mypy')}"
    if code := protoc.main(["protoc", plugin, *includes, *outputs, *names]):
        sys.exit(code)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
