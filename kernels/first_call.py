"""A first call in its parts: compiling, loading, launching, as far as the tools tell them apart.

Imports no torch: what is compiled for a CPU announces itself here too.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

AT_HAND = "an earlier call of this process had its machine code at hand"
SILENT = "this Triton has no listeners to tell it apart: 3.5 or later has"
CACHED = "its machine code was found in the cache of compiled kernels"
_INDUCTOR_CLOCK, _INDUCTOR_COMPILES = "_compile.compile_inner", "fx_codegen_and_compile"
_Call = Callable[[], object]


class Loaded(Protocol):
    """Machine code in this process: a module on a GPU, a library on a CPU. All in seconds.

    `since` is when loading began, `code_s` the time until the code was there, compiled or found,
    `compile_s` the compiler's part of it, None when it was found.
    """

    since: float
    load_s: float

    @property
    def code_s(self) -> float:
        """Seconds until the machine code was there."""

    @property
    def compile_s(self) -> float | None:
        """Seconds in the compiler."""


_Kind = TypeVar("_Kind", bound=Loaded)


@dataclass(frozen=True)
class Parts:
    """Seconds of a first call. Where one is None, `reasons` says why under its name.

    `code_s` is the time until machine code was there, compiled or found; `compile_s` the time in a
    compiler. What was compiled or loaded before the call counts, but is no part of `launch_s`.
    """

    launch_s: float
    compile_s: float | None = None
    load_s: float | None = None
    code_s: float | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def told(self) -> dict[str, float | str]:
        """Return each part's seconds, or in words why there are none."""
        parts = {"compile_s": self.compile_s, "load_s": self.load_s, "launch_s": self.launch_s}
        return {
            name: self.reasons[name] if seconds is None else seconds
            for name, seconds in parts.items()
        }


class _Listeners(threading.local):
    """The lists that a thread's calls note their modules in."""

    def __init__(self) -> None:
        self.lists: list[list[Loaded]] = []


_listeners = _Listeners()


def announced(loaded: _Kind) -> _Kind:
    """Return what a launch asks for, noted by who listens in this thread."""
    for noted in _listeners.lists:
        noted.append(loaded)
    return loaded


@contextmanager
def _listening() -> Iterator[list[Loaded]]:
    """Give a list of what this thread's launches ask for, each time that they do."""
    noted: list[Loaded] = []
    _listeners.lists.append(noted)
    try:
        yield noted
    finally:
        _listeners.lists.remove(noted)


def clocked(call: _Call) -> float:
    """Return how long a call takes, in seconds."""
    began = perf_counter()
    call()
    return perf_counter() - began


def whole(call: _Call, compile_reason: str, load_reason: str) -> Parts:
    """Make a first call that nothing splits."""
    reasons = {"compile_s": compile_reason, "load_s": load_reason}
    return Parts(clocked(call), reasons=reasons)


def _found(code_s: float) -> str:
    return f"{CACHED} within {code_s:.2g} s"


def of_modules(call: _Call) -> Parts:
    """Make the first call of what is ours: the modules that it asks for tell their own times."""
    began = perf_counter()
    with _listening() as noted:
        took = clocked(call)
    asked = list({id(each): each for each in noted}.values())
    if not asked:
        return Parts(took, reasons={"compile_s": AT_HAND, "load_s": AT_HAND})
    within = sum(each.code_s + each.load_s for each in asked if each.since >= began)
    compiled = [each.compile_s for each in asked if each.compile_s is not None]
    return Parts(
        launch_s=max(0.0, took - within),
        compile_s=sum(compiled) if compiled else None,
        load_s=sum(each.load_s for each in asked),
        code_s=sum(each.code_s for each in asked),
        reasons={} if compiled else {"compile_s": _found(sum(each.code_s for each in asked))},
    )


@contextmanager
def _triton_listens() -> Iterator[tuple[list[tuple[float, bool]], list[float]]]:
    """Give what Triton tells: seconds and cache hit of each compilation, a mark about each load."""
    knobs: Any = import_module("triton.knobs")
    compilation, runtime = knobs.compilation, knobs.runtime
    compiles: list[tuple[float, bool]] = []
    marks: list[float] = []
    earlier = compilation.listener

    def listen(*, times: Any, cache_hit: bool, **rest: Any) -> None:
        compiles.append((times.total * 1e-6, cache_hit))
        if earlier is not None:
            earlier(times=times, cache_hit=cache_hit, **rest)

    def mark(*_: Any, **__: Any) -> None:
        marks.append(perf_counter())

    hooks = (runtime.kernel_load_start_hook, runtime.kernel_load_end_hook)
    compilation.listener = listen
    for hook in hooks:
        hook.add(mark)
    try:
        yield compiles, marks
    finally:
        compilation.listener = earlier
        for hook in hooks:
            hook.remove(mark)


def _can_listen() -> bool:
    """Whether this Triton has the listener and both hooks, to which functions can be added."""
    if find_spec("triton.knobs") is None:
        return False
    knobs: Any = import_module("triton.knobs")
    hooks = ("kernel_load_start_hook", "kernel_load_end_hook")
    return hasattr(getattr(knobs, "compilation", None), "listener") and all(
        hasattr(getattr(getattr(knobs, "runtime", None), name, None), step)
        for name in hooks
        for step in ("add", "remove")
    )


def of_triton(call: _Call) -> Parts:
    """Make a Triton kernel's first call: its listeners tell compiling and loading.

    Building its launcher, by a C compiler, is in `launch_s`. An older one tells nothing.
    """
    if not _can_listen():
        return whole(call, SILENT, SILENT)
    with _triton_listens() as (compiles, marks):
        took = clocked(call)
    load_s = sum(end - start for start, end in zip(marks[::2], marks[1::2], strict=False))
    code_s = sum(seconds for seconds, _ in compiles)
    compiled = [seconds for seconds, hit in compiles if not hit]
    reasons = {}
    if not compiled:
        reasons["compile_s"] = _found(code_s) if compiles else AT_HAND
    if not marks:
        reasons["load_s"] = AT_HAND
    return Parts(
        launch_s=max(0.0, took - code_s - load_s),
        compile_s=sum(compiled) if compiled else None,
        load_s=load_s if marks else None,
        code_s=code_s if compiles else None,
        reasons=reasons,
    )


def of_inductor(call: _Call) -> Parts:
    """Make a first call through torch.compile: Dynamo's clock tells compiling, loading within it.

    What Inductor finds in its cache is traced again all the same, which is in `code_s`.
    """
    spent: Mapping[str, list[float]] = import_module("torch._dynamo.utils").compilation_time_metrics
    clocks, compiles = (list(spent.get(n, ())) for n in (_INDUCTOR_CLOCK, _INDUCTOR_COMPILES))
    took = clocked(call)
    traced = spent.get(_INDUCTOR_CLOCK, [])[len(clocks) :]
    code_s = min(took, sum(traced)) if traced else None
    compiled = len(spent.get(_INDUCTOR_COMPILES, ())) > len(compiles)
    reasons = {"load_s": "torch.compile loads while it compiles and does not tell when"}
    if not compiled:
        reasons["compile_s"] = AT_HAND if code_s is None else _found(code_s)
    return Parts(
        launch_s=took - (code_s or 0.0),
        compile_s=code_s if compiled else None,
        code_s=code_s,
        reasons=reasons,
    )
