"""Every correctness test runs on the CPU and, where there is one, on a GPU.

A run of many tests starts compiling what they need at once, beside the tests: one after another the
compilers would take as long as everything else. A test whose kernel is not ready waits for it.
"""

import os
import subprocess
import sys
from pathlib import Path

# Cores that wait for work by spinning take the time of those that have some. Read when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch

from kernels import host, sanitize
from kernels.gate import ARCHITECTURES

MANY = 200
NO_GPU = "no NVIDIA GPU here"
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
_HERE = Path(__file__).parent
_compiling = pytest.StashKey["subprocess.Popen[bytes]"]()


@pytest.fixture(
    params=[
        pytest.param("cpu", id="cpu"),
        pytest.param("cuda", id="cuda", marks=[gpu, needs_gpu]),
    ]
)
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start compiling, unless few tests run or another process of the session does it."""
    own = [item for item in session.items if item.path.parent == _HERE]
    if len(own) < MANY or hasattr(session.config, "workerinput"):
        return
    if session.config.option.collectonly or host.compiler() is None:
        return
    files = {item.path.name for item in own}
    command = [sys.executable, "-m", "kernels", "build", "--host", "--jobs", "2"]
    if "test_gate.py" in files:
        command += ["--arch", *ARCHITECTURES]
    if "test_sanitize.py" in files and sanitize.runtimes():
        command += ["--sanitized"]
    session.config.stash[_compiling] = subprocess.Popen(
        command, cwd=_HERE.parent.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop what still compiles."""
    process = session.config.stash.get(_compiling, None)
    if process is not None:
        process.terminate()
        process.wait()
