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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
# Somebody's own kernel: CuPy where there is a GPU, torch where there is none. WORK repeats it, which
# is how a regression is planted.
KERNEL = """
import torch

WORK = 1


def scale(x, out):
    for _ in range(WORK):
        if x.is_cuda:
            import cupy

            kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "their_scale")
            stream = torch.cuda.current_stream().cuda_stream
            with cupy.cuda.ExternalStream(stream):
                kernel(cupy.from_dlpack(x), cupy.from_dlpack(out))
        else:
            torch.mul(x, 3.0, out=out)
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
            bound=lambda inputs: inputs[0].double().abs() * 3 * 2**-24,
            output_shape=(SIZE,),
            output_dtype=torch.float32,
            bytes_moved=2 * 4 * SIZE,
        )
    )
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
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
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(found.stdout.strip(), "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return folder / "venv/bin"


class Theirs:
    """Their repository, and commands called in it."""

    def __init__(self, root: Path, tools: Path) -> None:
        self.root, self.tools = root, tools
        root.mkdir()
        fake.git(root, "init", "--quiet", "--initial-branch=main")
        # Their packages are called what they like; ours must not get in the way.
        ignored = "__pycache__/\n.pytest_cache/\n.benchmarks/\n"
        self.commit(
            {"their_kernels.py": KERNEL, "conftest.py": "", ".gitignore": ignored}, "Our kernel"
        )

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
    # A busy machine needs more time for the six measurements that a verdict asks for.
    patient = '\n[tool.bandwatch.ci]\narguments = ["--bandwatch-max-seconds", "4"]\n'
    settings.write_text(settings.read_text() + patient)
    theirs.commit({"perf/test_example.py": SUITE}, "Measure it")
    # First run: nothing to compare with, and that is no error.
    first = theirs.call("bandwatch", "ci")
    assert first.returncode == 0, first.stdout + first.stderr
    assert theirs.report()["facts"]["verdict"] == "no baseline"
    # A regression is planted in their kernel, and nowhere else.
    theirs.commit({"their_kernels.py": KERNEL.replace("WORK = 1", "WORK = 25")}, "Slower")
    second = theirs.call("bandwatch", "ci")
    assert second.returncode == 1, second.stdout + second.stderr
    (row,) = theirs.report()["tables"]["verdicts"]
    assert row["outcome"] == "regression"
    assert row["bandwidth_change"] < -0.5
    assert fake.git(theirs.root, "status", "--porcelain") == ""
    # The same by the plugin alone, which judges against the store.
    third = theirs.call("python", "-m", "pytest", "--benchmark", "-q")
    assert "scale/theirs" in third.stdout
