"""The same CUDA source compiled by g++ and run on the CPU: blocks by OpenMP, threads one by one.

Imports no torch, so that the sanitizer runs can preload their runtime into a small process.
"""

import ctypes
import os
import platform
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from kernels import toolkit
from kernels.build import BuildError
from kernels.cache import DEVICE_FOLDER, Made, key, produce, texts
from kernels.first_call import announce

# Thread-local storage by descriptors: as fast as the static kind, of which there is little.
TLS = ("-mtls-dialect=gnu2",) if platform.machine() == "x86_64" else ()
FLAGS = (
    *("-x", "c++", "-std=c++17", "-O3", "-fPIC", "-shared", "-fopenmp", "-DBANDWATCH_HOST"),
    *("-fno-strict-aliasing", "-fno-trapping-math", *TLS),
    *("-fvisibility=hidden", "-Wall", "-Wno-unknown-pragmas"),
)
SANITIZE = (
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    *("-fno-omit-frame-pointer", "-O1"),
)


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
    )


def compiler() -> str | None:
    """Return the C++ compiler's path, or None where there is none."""
    return shutil.which(os.environ.get("CXX", "g++"))


@cache
def _compiler_version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(source: Path, flags: Sequence[str], target: Path) -> None:
    path = compiler()
    if path is None:
        raise BuildError("cannot run CUDA sources on the CPU: no g++ found; install g++ or set CXX")
    includes = (
        f"-I{DEVICE_FOLDER}",
        f"-I{source.parent}",
        *(part for folder in toolkit.include_folders() for part in ("-isystem", str(folder))),
    )
    command = [path, *flags, *includes, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot compile {source.name} for the CPU:\n{done.stderr.strip()}")


def compile_library(source: Path, extra: Sequence[str] = ()) -> Path:
    """Return the shared library of a source, from disk when it is there.

    Raises BuildError with the compiler's message, or naming the missing compiler.
    """
    return _made(source, extra).path


def _made(source: Path, extra: Sequence[str]) -> Made:
    flags = (*FLAGS, *extra)
    path = compiler()
    version = _compiler_version(path) if path else ""
    digest = key((*texts(source), *flags, version))
    return produce(
        f"{source.parent.name}-host-{digest}.so", lambda path: _compile(source, flags, path)
    )


class Library:
    """The kernels of one source in this process, with the times of `first_call.Loaded`."""

    def __init__(self, source: Path, extra: Sequence[str] = ()) -> None:
        began = perf_counter()
        made = _made(source, extra)
        self.since = perf_counter()
        self.compile_s, self.code_s = made.build_s, self.since - began
        self._library = ctypes.CDLL(str(made.path))
        self.load_s = perf_counter() - self.since
        self._source = source

    def function(self, name: str, layout: str, threads: int) -> "Function":
        """Return kernel `name`; `layout` is its parameter list as `struct` format characters.

        Raises ValueError when the source has no such kernel.
        """
        began = perf_counter()
        try:
            entry = getattr(self._library, f"host_{name}")
        except AttributeError:
            raise ValueError(
                f"{self._source.parent.name}/{self._source.name} has no kernel {name}"
            ) from None
        announce(self, perf_counter() - began)
        entry.restype = None
        return Function(entry, layout, threads)


class Function:
    """One kernel on the CPU: called as `launch.Function` is, it runs to its end."""

    __slots__ = ("_entry", "_pack", "_threads")

    def __init__(self, entry: Any, layout: str, threads: int) -> None:
        self._entry = entry
        self._pack = struct.Struct(f"@{layout}").pack
        self._threads = threads

    def __call__(self, blocks: int, *values: Any) -> None:
        """Run `blocks` blocks; `values` are the kernel's arguments, pointers as integers."""
        self.bind(blocks, *values)()

    def bind(self, blocks: int, *values: Any) -> Callable[[], None]:
        """Return the launch with its arguments packed: a call that needs nothing more."""
        launch = _Launch((blocks, 1, 1), (self._threads, 1, 1))
        entry, where, packed = self._entry, ctypes.byref(launch), self._pack(*values)

        def call() -> None:
            entry(where, packed)

        return call


def library(source: Path, extra: Sequence[str] = ()) -> Library:
    """Return the loaded library of a source, built once a process."""
    return _library(source, tuple(extra))


@cache
def _library(source: Path, extra: tuple[str, ...]) -> Library:
    return Library(source, extra)
