"""Which packages are there, in which version, and how to get those that are not."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from tracker.doctor.finding import Finding, Level
from tracker.last_words import telling_line

AREA = "packages"
_PROBE = (
    "import json, torch; print(json.dumps({'version': torch.__version__, "
    "'cuda': torch.version.cuda, 'available': torch.cuda.is_available()}))"
)
_PROBE_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution under one of its names, what needs it, and the extra that brings it."""

    names: tuple[str, ...]
    needed_for: str
    extra: str
    required: bool = False
    gpu_only: bool = False


PACKAGES = (
    Package(("pytest",), "measuring", "measure", required=True),
    Package(("pytest-benchmark",), "measuring", "measure", required=True),
    Package(("torch",), "measuring", "measure", required=True),
    Package(("triton",), "the triton implementations", "gpu", gpu_only=True),
    Package(("cupy-cuda13x", "cupy-cuda12x", "cupy"), "launching CUDA", "gpu", gpu_only=True),
    Package(("cuda-bindings",), "compiling CUDA", "gpu", gpu_only=True),
    Package(
        ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"), "compiling CUDA", "gpu", gpu_only=True
    ),
    Package(("nvidia-ml-py",), "clocks, throttling and other users", "gpu", gpu_only=True),
    Package(("streamlit",), "the dashboard", "dashboard"),
    Package(("altair",), "the dashboard", "dashboard"),
    Package(("pandas",), "the dashboard", "dashboard"),
    Package(("psycopg",), "a PostgreSQL store", "postgres"),
)


@dataclass(frozen=True, slots=True)
class Torch:
    """What torch says of itself in a process of its own; `problem` when it could not."""

    version: str | None = None
    cuda: str | None = None
    available: bool = False
    problem: str | None = None


def probe_torch() -> Torch:
    """Ask torch in a separate process, so that a broken installation cannot end this one."""
    command = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Torch(problem=str(error))
    if done.returncode != 0:
        said = telling_line(done.stderr) if done.stderr.strip() else None
        return Torch(problem=said or f"exit status {done.returncode}")
    return Torch(**json.loads(done.stdout.strip().splitlines()[-1]))


def installed(name: str) -> str | None:
    """Return the version of a distribution, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_packages(
    *, gpu: bool, cuda: str | None, look: Callable[[str], str | None] = installed
) -> tuple[Finding, ...]:
    """Return one finding a package; those for GPUs only matter where there is a GPU."""
    return tuple(_check(package, gpu=gpu, cuda=cuda, look=look) for package in PACKAGES)


def install_command(extra: str, cuda: str | None = None, names: Collection[str] = ()) -> str:
    """Return the command that installs what an extra brings, or of that only `names`.

    For the CUDA version that the driver supports. The packages are named themselves: Bandwatch is
    on no index, so its own name with an extra would install nothing, or somebody else's package.
    """
    wanted = "gpu12" if extra == "gpu" and cuda and cuda.startswith("12.") else extra
    brought = [text for text in _brought(wanted) if not names or _name(text) in names]
    shown = " ".join(f"'{text}'" for text in brought or list(names)[:1])
    return f"{sys.executable} -m pip install {shown}"


def _brought(extra: str) -> list[str]:
    """Return the requirements of an extra, without its marker."""
    try:
        lines = requires("bandwatch") or []
    except PackageNotFoundError:
        lines = []
    parts = [line.partition(";") for line in lines]
    return [text.strip() for text, _, marker in parts if marker.strip() == f"extra == '{extra}'"]


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _check(
    package: Package, *, gpu: bool, cuda: str | None, look: Callable[[str], str | None]
) -> Finding:
    found = {name: look(name) for name in package.names}
    there = next(((name, number) for name, number in found.items() if number), None)
    if there is not None:
        return Finding(AREA, there[0], Level.OK, there[1])
    missing = f"not installed; needed for {package.needed_for}"
    if package.gpu_only and not gpu:
        return Finding(AREA, package.names[0], Level.INFO, f"{missing} on a GPU")
    level = Level.FAIL if package.required else Level.WARN if package.gpu_only else Level.INFO
    fix = install_command(package.extra, cuda, package.names)
    return Finding(AREA, package.names[0], level, missing, fix)
