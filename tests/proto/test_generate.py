import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROTOCOL = Path("gpustow/kubelet/protocol")


def test_the_committed_protocol_code_is_what_the_proto_files_generate(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "proto" / "generate.py", tmp_path], check=True)
    committed = {
        path.name: path.read_text() for path in (ROOT / "src" / PROTOCOL).iterdir() if path.stem.endswith("_pb2")
    }
    generated = {path.name: path.read_text() for path in (tmp_path / PROTOCOL).iterdir()}
    assert committed == generated, "run `make proto` and commit what it writes"
    assert len(generated) == 2 * len(list((ROOT / "proto" / PROTOCOL).glob("*.proto")))


def test_generating_fails_with_the_place_of_a_fault(tmp_path: Path) -> None:
    proto = tmp_path / "proto"
    proto.mkdir()
    (proto / "generate.py").write_text((ROOT / "proto" / "generate.py").read_text())
    (proto / "broken.proto").write_text('syntax = "proto3";\nmessage {}\n')
    ended = subprocess.run(
        [sys.executable, proto / "generate.py", tmp_path], check=False, capture_output=True, text=True
    )
    assert ended.returncode != 0
    assert "broken.proto:2" in ended.stderr
