"""CUDA source to CUBIN by NVRTC: the same bytes for running and for the static checks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from kernels import toolkit
from kernels.cache import DEVICE_FOLDER, key, produce, texts

OPTIONS = ("-std=c++17",)


class BuildError(RuntimeError):
    """A source that NVRTC or g++ refuses; the message carries the compiler's own words."""


@dataclass(frozen=True)
class Cubin:
    """Machine code of one source for one architecture.

    In seconds: `compile_s` is the compiler's time, None when the code was cached, `code_s` the time
    until the code was there.
    """

    source: Path
    arch: str
    code: bytes
    compile_s: float | None
    code_s: float

    @property
    def fingerprint(self) -> str:
        """Digest of the machine code: equal fingerprints run equal instructions."""
        return hashlib.sha256(self.code).hexdigest()[:16]


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise BuildError(
            "cannot compile CUDA sources: cuda-bindings is missing; "
            "pip install 'cuda-bindings>=13.0,<13.1' 'nvidia-cuda-nvrtc>=13.0,<13.1'"
        ) from error
    return nvrtc


def _checked(nvrtc: Any, result: tuple[Any, ...], what: str) -> Any:
    code, *values = result
    if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(f"cannot {what}: NVRTC says {code.name}")
    return values[0] if values else None


@cache
def nvrtc_version() -> str:
    """Return NVRTC's version, such as "13.0". Raises BuildError when NVRTC is not installed."""
    nvrtc = _nvrtc()
    try:
        code, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        raise BuildError(
            f"cannot load NVRTC ({error}); pip install 'nvidia-cuda-nvrtc>=13.0,<13.1'"
        ) from error
    _checked(nvrtc, (code,), "ask NVRTC for its version")
    return f"{major}.{minor}"


@cache
def supported_archs() -> tuple[int, ...]:
    """Return the compute capabilities that this NVRTC compiles for, such as 90 for sm_90."""
    nvrtc = _nvrtc()
    nvrtc_version()
    return tuple(_checked(nvrtc, nvrtc.nvrtcGetSupportedArchs(), "list NVRTC's architectures"))


def arch_for(capability: tuple[int, int]) -> str:
    """Return the newest architecture that runs on a device: same major, not a later minor.

    Raises BuildError when this NVRTC has none.
    """
    fitting = [a for a in supported_archs() if a // 10 == capability[0] and a % 10 <= capability[1]]
    if not fitting:
        raise BuildError(
            f"cannot compile for compute capability {capability[0]}.{capability[1]}: "
            f"NVRTC {nvrtc_version()} compiles for {', '.join(map(str, supported_archs()))}"
        )
    return f"sm_{max(fitting)}"


def options_for(arch: str, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the compiler options, include folders apart: they and the text identify a build."""
    return (f"--gpu-architecture={arch}", *OPTIONS, *extra)


def _compile(source: Path, options: Sequence[str]) -> bytes:
    nvrtc = _nvrtc()
    folders = [f"-I{path}" for path in (DEVICE_FOLDER, source.parent, *toolkit.include_folders())]
    encoded = [option.encode() for option in (*options, *folders)]
    program = _checked(
        nvrtc,
        nvrtc.nvrtcCreateProgram(source.read_bytes(), source.name.encode(), 0, [], []),
        "start a compilation",
    )
    try:
        (code,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            size = _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program), "read the log's size")
            log = bytes(size)
            nvrtc.nvrtcGetProgramLog(program, log)
            text = log.decode(errors="replace").strip("\0\n ")
            raise BuildError(f"cannot compile {source.name} with {' '.join(options)}:\n{text}")
        size = _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program), "read the CUBIN's size")
        cubin = bytes(size)
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin), "read the CUBIN")
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def compile_cubin(source: Path, arch: str, extra: Sequence[str] = ()) -> Cubin:
    """Return a source's CUBIN for an architecture such as "sm_90", from disk when it is there.

    Raises BuildError with the compiler's message.
    """
    began = perf_counter()
    options = options_for(arch, extra)
    digest = key((*texts(source), *options, f"nvrtc {nvrtc_version()}"))

    def build(target: Path) -> None:
        target.write_bytes(_compile(source, options))

    made = produce(f"{source.parent.name}-{arch}-{digest}.cubin", build)
    code = made.path.read_bytes()
    return Cubin(source, arch, code, made.build_s, perf_counter() - began)
