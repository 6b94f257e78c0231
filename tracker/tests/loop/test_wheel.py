"""The built wheel in somebody else's repository: from `init` to a caught regression.

The environment has the wheel alone; what it needs (torch, pytest, NumPy) is borrowed from ours, so
that nothing is downloaded.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from tracker.tests.loop import fake

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[3]
# Somebody's own kernel: CuPy where there is a GPU, C++ that their build step compiles where there is
# none. WORK in the C++ and in the CuPy source repeats it, which is how a regression is planted.
KERNEL = """
import ctypes
from functools import cache
from pathlib import Path

import torch

WORK = 1
HERE = Path(__file__).parent


@cache
def their_scale():
    import cupy

    return cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "their_scale")


def scale(x, out):
    if x.is_cuda:
        import cupy

        kernel = their_scale()
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            for _ in range(WORK):
                kernel(cupy.from_dlpack(x), cupy.from_dlpack(out))
    else:
        pointer = ctypes.c_void_p
        ctypes.CDLL(str(HERE / "their_scale.so")).scale(
            pointer(x.data_ptr()), pointer(out.data_ptr()), ctypes.c_long(x.numel())
        )
"""
SOURCE = """
static const int WORK = 1;

extern "C" void scale(const float *x, float *y, long n) {
    for (int again = 0; again < WORK; ++again) {
        for (long i = 0; i < n; ++i) y[i] = 3.0f * x[i];
        asm volatile("" : : "r"(y) : "memory");
    }
}
"""
SETTINGS = """
[tool.bandwatch.ci]
build = ["g++", "-O2", "-shared", "-fPIC", "-o", "their_scale.so", "their_scale.cpp"]
# A busy machine needs more time for the six measurements that a verdict asks for.
arguments = ["--bandwatch-max-seconds", "4"]
"""
SUITE = """
import torch
from perftests.harness.workload import Workload
from their_kernels import scale

SIZE = 1 << 18


def test_scale(gpu_benchmark, bandwatch_device):
    def make_inputs(seed):
        generator = torch.Generator(bandwatch_device).manual_seed(seed)
        return (torch.randn(SIZE, generator=generator, device=bandwatch_device),)

    gpu_benchmark(
        Workload(
            kernel="scale",
            implementation="theirs",
            launch=lambda inputs, out: scale(inputs[0], out),
            make_inputs=make_inputs,
            reference=lambda inputs: inputs[0].double() * 3,
            # CuPy compiles with subnormals flushed to zero: the harness tries one and would tell.
            bound=lambda inputs: inputs[0].double().abs() * 3 * 2**-24 + 3 * 2**-126,
            output_shape=(SIZE,),
            output_dtype=torch.float32,
            bytes_moved=2 * 4 * SIZE,
        )
    )
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel."""
    return install_wheel(tmp_path_factory.mktemp("wheel"))


def install_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout, install it into an environment, return its bin folder."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            str(folder),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    install = [str(python), "-m", "pip", "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    # A path in a .pth file comes last and its own .pth files are not read: our checkout stays out.
    added = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    ours = {path for path in added if Path(path).resolve() != ROOT}
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *ours}
    Path(found.stdout.strip(), "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return folder / "venv/bin"


class Theirs:
    """Their repository, and commands called in it."""

    def __init__(self, root: Path, tools: Path) -> None:
        self.root, self.tools = root, tools
        root.mkdir()
        fake.git(root, "init", "--quiet", "--initial-branch=main")
        # Their packages are called what they like; ours must not get in the way.
        ignored = "__pycache__/\n.pytest_cache/\n.benchmarks/\n*.so\n"
        files = {"their_kernels.py": KERNEL, "their_scale.cpp": SOURCE, "conftest.py": ""}
        self.commit({**files, ".gitignore": ignored}, "Our kernel")

    def commit(self, files: dict[str, str], message: str) -> str:
        return fake.commit(self.root, message, files)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = ("HOME", "LANG", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment["PATH"] = os.pathsep.join([str(self.tools), os.environ["PATH"]])
        return subprocess.run(
            arguments, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / ".bandwatch/ci/report.json").read_text())
        return found


@pytest.fixture
def theirs(tmp_path: Path, tools: Path) -> Theirs:
    return Theirs(tmp_path / "theirs", tools)


def test_the_wheel_brings_no_kernels_and_is_not_our_checkout(theirs: Theirs) -> None:
    script = (
        "import importlib.util as u, tracker, perftests.plugin\n"
        "print(u.find_spec('kernels'), tracker.__file__, perftests.plugin.__file__)"
    )
    answer = theirs.call("python", "-c", script)
    assert answer.stdout.startswith("None "), answer.stderr
    assert str(ROOT) not in answer.stdout.replace(str(theirs.tools), "")


def test_from_init_to_a_caught_regression(theirs: Theirs) -> None:
    started = theirs.call("bandwatch", "init")
    assert started.returncode == 0, started.stderr
    settings = theirs.root / "pyproject.toml"
    settings.write_text(settings.read_text() + SETTINGS)
    good = theirs.commit({"benchmarks/test_example.py": SUITE}, "Measure it")
    # First run: nothing to compare with, and that is no error.
    first = theirs.call("bandwatch", "ci")
    assert first.returncode == 0, first.stdout + first.stderr
    assert theirs.report()["facts"]["verdict"] == "no baseline"
    # It is the baseline of a commit that changes nothing.
    theirs.commit({"README": "Kernels.\n"}, "Say what this is")
    same = theirs.call("bandwatch", "ci")
    for _ in range(2):  # what did not settle on a machine that does other work is no fair base
        if "head did not settle" in same.stdout:
            same = theirs.call("bandwatch", "ci")
    assert same.returncode in {0, 3}, same.stdout + same.stderr
    assert "newest clean run of the parent commit" in same.stdout
    # A regression is planted in their kernel, and nowhere else.
    slow = theirs.commit(planted(), "Make it nicer")
    second = theirs.call("bandwatch", "ci")
    assert second.returncode == 1, second.stdout + second.stderr
    (row,) = theirs.report()["tables"]["verdicts"]
    assert row["outcome"] == "regression"
    assert row["bandwidth_change"] < -0.5
    assert fake.git(theirs.root, "status", "--porcelain") == ""
    reports = theirs.root / ".bandwatch/ci"
    assert "slower" in (reports / "report.html").read_text()
    assert 'failures="1"' in (reports / "junit.xml").read_text()
    assert "**1 regression of 1 case: exit 1**" in (reports / "comment.md").read_text()
    # Which commit it was, each built in a worktree of its own.
    theirs.commit({"README": "Fast kernels.\n"}, "Say more")
    asked = ("bandwatch", "bisect", "scale", good, "main", "--format", "json")
    found = json.loads(theirs.call(*asked).stdout)
    assert found["facts"]["culprit"] == slow
    # The same by the plugin alone, which judges against the store.
    third = theirs.call("python", "-m", "pytest", "--benchmark", "-q")
    assert "scale/theirs" in third.stdout


def planted() -> dict[str, str]:
    """Return their sources with the work repeated."""
    return {
        name: text.replace("WORK = 1", "WORK = 25")
        for name, text in (("their_kernels.py", KERNEL), ("their_scale.cpp", SOURCE))
    }
