"""The first call of a case in its parts: compiling, loading, launching, as far as tools tell them.

A later case may be compiled anew, for its shape or its parameters, or find its code at hand: each
case's call is listened to, and what was compiled or loaded within it speaks.
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
from typing import Any, Protocol
from weakref import WeakSet

AT_HAND = "an earlier call of this process had its machine code at hand"
LAUNCHED = "this process had launched it before"
SILENT = "this Triton has no listeners to tell it apart: 3.5 or later has"
CACHED = "its machine code was found in the cache of compiled kernels"
# Dynamo's names of its clocks. The second runs when Inductor makes code and not when it finds it.
_INDUCTOR_CLOCK, _INDUCTOR_COMPILES = "_compile.compile_inner", "GraphLowering.run"
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


@dataclass(frozen=True)
class Parts:
    """Seconds of a first call. `reasons` says under the name of a part why it is not told.

    `code_s` is the time until machine code was there, compiled or found; `compile_s` the time in a
    compiler. What was compiled or loaded before the call counts where no earlier call told it, but
    is no part of `launch_s`: the rest of the call, no cold launch where `reasons` has it.
    """

    launch_s: float
    compile_s: float | None = None
    load_s: float | None = None
    code_s: float | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def told(self) -> dict[str, float | str]:
        """Return each part's seconds, or in words why there are none."""
        parts = {"compile_s": self.compile_s, "load_s": self.load_s, "launch_s": self.launch_s}
        known = {name: seconds for name, seconds in parts.items() if seconds is not None}
        return {**known, **self.reasons}


_Taken = tuple[Loaded, float]
"""What a kernel was taken from, and the seconds of taking it."""


class _Listeners(threading.local):
    """The lists that a thread's calls note in what they take their kernels from."""

    def __init__(self) -> None:
        self.lists: list[list[_Taken]] = []


_listeners = _Listeners()
_told: WeakSet[Loaded] = WeakSet()


def announce(loaded: Loaded, took_s: float) -> None:
    """Say that a kernel was taken from machine code in `took_s`, to who listens in this thread."""
    for noted in _listeners.lists:
        noted.append((loaded, took_s))


@contextmanager
def _listening() -> Iterator[list[_Taken]]:
    """Give a list of what this thread takes kernels from, each time that it does."""
    noted: list[_Taken] = []
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
    """Make a first call that nothing splits: all that it compiles and loads is in `launch_s`."""
    reasons = {"compile_s": compile_reason, "load_s": load_reason}
    return Parts(clocked(call), reasons=reasons)


def _at_hand(took_s: float) -> Parts:
    """Return the parts of a call that compiled and loaded nothing and launched no new code."""
    reasons = {"compile_s": AT_HAND, "load_s": AT_HAND, "launch_s": LAUNCHED}
    return Parts(took_s, reasons=reasons)


def _found(code_s: float) -> str:
    return f"{CACHED} within {code_s:.2g} s"


def of_modules(call: _Call) -> Parts:
    """Make the first call of what is ours: the modules that it takes kernels from tell their times.

    A module's seconds are told once a process; to a later call its code is at hand. To take a
    kernel is to load it: a driver may have left that until then. A call that takes none has
    launched its own before.
    """
    began = perf_counter()
    with _listening() as noted:
        took = clocked(call)
    if not noted:
        return _at_hand(took)
    modules = list({id(each): each for each, _ in noted}.values())
    taken_s = sum(seconds for _, seconds in noted)
    within = sum(each.code_s + each.load_s for each in modules if each.since >= began)
    fresh = [each for each in modules if each not in _told]
    _told.update(fresh)
    code_s = sum(each.code_s for each in fresh)
    compiled = [each.compile_s for each in fresh if each.compile_s is not None]
    reasons = {}
    if not compiled:
        reasons["compile_s"] = _found(code_s) if fresh else AT_HAND
    return Parts(
        launch_s=max(0.0, took - within - taken_s),
        compile_s=sum(compiled) if compiled else None,
        load_s=sum(each.load_s for each in fresh) + taken_s,
        code_s=code_s if fresh else None,
        reasons=reasons,
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

    Triton compiles anew where an argument is 1, or divisible by 16, and was not before, and loads
    as it first launches. Building its launcher, by a C compiler, is in `launch_s`. An older one
    tells nothing.
    """
    if not _can_listen():
        return whole(call, SILENT, SILENT)
    with _triton_listens() as (compiles, marks):
        took = clocked(call)
    if not compiles and not marks:
        return _at_hand(took)
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

    What Inductor finds in its cache is traced again all the same, which is in `code_s`. A shape
    that Dynamo has no code for is traced as the first was.
    """
    spent: Mapping[str, list[float]] = import_module("torch._dynamo.utils").compilation_time_metrics
    clocks, compiles = (len(spent.get(name, ())) for name in (_INDUCTOR_CLOCK, _INDUCTOR_COMPILES))
    took = clocked(call)
    traced = spent.get(_INDUCTOR_CLOCK, [])[clocks:]
    if not traced:
        return _at_hand(took)
    code_s = min(took, sum(traced))
    compiled = len(spent.get(_INDUCTOR_COMPILES, ())) > compiles
    reasons = {"load_s": "torch.compile loads while it compiles and does not tell when"}
    if not compiled:
        reasons["compile_s"] = _found(code_s)
    return Parts(
        launch_s=took - code_s,
        compile_s=code_s if compiled else None,
        code_s=code_s,
        reasons=reasons,
    )
