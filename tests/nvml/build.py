"""Builds the fake library with the C compiler, once for each version of its source."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).parent / "library"
_BUILT = Path(__file__).parents[2] / "build" / "fakenvml"
_FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread")

LIBRARY = "libnvidia-ml.so.1"


def built_library() -> Path:
    """The path of the fake library, which is built if it is not there yet."""
    sources = sorted(_SOURCE.iterdir())
    content = b"\0".join([" ".join(_FLAGS).encode(), *(source.read_bytes() for source in sources)])
    folder = _BUILT / hashlib.sha256(content).hexdigest()[:16]
    library = folder / LIBRARY
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fresh = Path(scratch) / LIBRARY
            code = [str(source) for source in sources if source.suffix == ".c"]
            subprocess.run(["cc", *_FLAGS, f"-Wl,-soname,{LIBRARY}", "-o", str(fresh), *code], check=True)
            fresh.replace(library)  # whole or not at all: several tests may build at once
    return library
