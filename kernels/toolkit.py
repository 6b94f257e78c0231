"""Where the parts of the CUDA toolkit lie: headers and tools, from wheels or an installation."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_HEADER = "cuda_fp16.h"


def _wheel_folders() -> Iterator[Path]:
    """Yield the roots of the toolkit's wheels: one for CUDA 13, one a component for CUDA 12."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(root) / "cu13"
        yield from sorted(Path(root).glob("cuda_*"))


def _installations() -> Iterator[Path]:
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    yield from (Path(value) for value in named if value)
    compiler = shutil.which("nvcc")
    if compiler:
        yield Path(compiler).resolve().parent.parent
    yield Path("/usr/local/cuda")


@cache
def include_folders() -> tuple[Path, ...]:
    """Return the folders of the CUDA headers: the wheels', else an installation's.

    An environment that builds on another has the wheels in two places, so all of them count.
    Raises FileNotFoundError naming the package that has them.
    """
    wheels = tuple(root / "include" for root in _wheel_folders() if (root / "include").is_dir())
    if any((folder / _HEADER).exists() for folder in wheels):
        return wheels
    for root in _installations():
        if (root / "include" / _HEADER).exists():
            return (root / "include",)
    raise FileNotFoundError(
        f"cannot find {_HEADER}: no CUDA headers in this environment, $CUDA_HOME or "
        "/usr/local/cuda; install the wheels nvidia-cuda-runtime, nvidia-cuda-crt and "
        "nvidia-cuda-cccl, 13.0"
    )


@cache
def binary(name: str) -> Path:
    """Return a tool of the toolkit, such as nvdisasm.

    Raises FileNotFoundError naming the wheel that has it.
    """
    for root in (*_wheel_folders(), *_installations()):
        if os.access(root / "bin" / name, os.X_OK):
            return root / "bin" / name
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    spec = importlib.util.find_spec("triton")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        bundled = Path(package) / "backends" / "nvidia" / "bin" / name
        if os.access(bundled, os.X_OK):
            return bundled
    raise FileNotFoundError(f"cannot find {name}; install the wheel nvidia-cuda-{name}")
