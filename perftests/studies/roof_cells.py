"""What the roof study measures: cells with their peers, and the goals that some of them have."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernels.cases import MIB, Case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIZES_MIB = (1, 4, 16, 64, 256, 1024)
OURS = "cuda_vector"
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_MISALIGNED = ((1, 0), (1, 1), (1, 3))
_TRANSFORM = "imagenet_ycbcr"
_CHANNELS = 64
_SIDE = 56  # images of 56 x 56, the first stage of a residual network


@dataclass(frozen=True)
class Goal:
    """What our kernel must reach: a share of the copy's rate, and times of others to divide by.

    `of` maps an implementation of the same cell (or "aligned": ours at the aligned cell of the same
    size) to the least that its time over ours may be; `driver` is a share of the driver's copy.
    """

    copy: float | None = None
    driver: float | None = None
    of: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One problem, the implementations measured on it (ours last), its size and its goal."""

    group: str
    case: Case
    mib: float
    names: tuple[str, ...]
    goal: Goal | None = None

    @property
    def label(self) -> str:
        """Name for people: kernel, dtype and what is special."""
        case = self.case
        extra = [
            str(v) for k, v in sorted(case.parameters.items()) if k in {"to", "layout", "dtype"}
        ]
        odd = [] if case.alignment == "aligned" else [case.alignment]
        odd += ["odd length"] if self.group == "odd lengths" else []
        shape = ["x".join(map(str, case.shape))] if self.group == "fused_transform" else []
        return " ".join([case.kernel, case.dtype, *filter(None, extra), *odd, *shape])


def _flat(
    group: str, kernel: str, dtype: str, mib: int, peers: tuple[str, ...], **more: object
) -> Cell:
    shorter = int(str(more.pop("shorter", 0)))
    goal = more.pop("goal", None)
    length = mib * MIB // _BYTES[dtype] - shorter
    case = replace(Case(kernel, dtype, (length,)), **more)  # type: ignore[arg-type]
    assert goal is None or isinstance(goal, Goal)
    return Cell(group, case, mib, (*peers, OURS), goal)


def _relu() -> Iterator[Cell]:
    for dtype in ("float32", "float16", "bfloat16"):
        for mib in SIZES_MIB if dtype != "bfloat16" else (256, 1024):
            compiled = ("torch_compile",) if mib == 256 else ()
            goal = Goal(copy=1.0) if mib >= 256 else None
            if mib == 16:
                goal = Goal(copy=1.0, driver=1.05)
            yield _flat("relu", "relu", dtype, mib, ("torch", "triton", *compiled), goal=goal)


def _misaligned() -> Iterator[Cell]:
    for dtype in ("float32", "float16"):
        for source, target in _MISALIGNED:
            yield _flat(
                "misaligned", "relu", dtype, 256, ("torch", "triton"),
                input_offsets=(source,), output_offset=target, goal=Goal(copy=0.99),
            )  # fmt: skip


def _odd() -> Iterator[Cell]:
    for dtype in ("float32", "float16"):
        for mib in (16, 256):
            yield _flat("odd lengths", "relu", dtype, mib, ("torch", "triton"), shorter=1,
                        goal=Goal(of={"aligned": 0.995}))  # fmt: skip


def _add() -> Iterator[Cell]:
    goals = {"float32": Goal(copy=1.035), "float16": Goal(copy=1.02)}
    for dtype, goal in goals.items():
        for mib in SIZES_MIB:
            yield _flat(
                "add", "add", dtype, mib, ("torch", "triton"), goal=goal if mib == 256 else None
            )


def _silu() -> Iterator[Cell]:
    goals = {"float32": Goal(copy=1.0), "float16": Goal(copy=0.99)}
    for dtype, goal in goals.items():
        for mib in SIZES_MIB:
            compiled = ("torch_compile",) if mib >= 256 else ()
            yield _flat("silu", "silu", dtype, mib, ("torch", "triton", *compiled),
                        goal=goal if mib == 1024 else None)  # fmt: skip


def _others() -> Iterator[Cell]:
    for dtype in ("float32", "float16"):
        for mib in (16, 256):
            yield _flat("others", "scale_relu", dtype, mib, ("triton",), parameters={"scale": 0.7})
    for source, target in (("float32", "float16"), ("float16", "float32"), ("float32", "bfloat16")):
        for mib in (16, 256):
            parameters = {"to": target, "rounding": "rn"}
            yield _flat("others", "convert", source, mib, ("torch",), parameters=parameters)


def _bn_relu_add() -> Iterator[Cell]:
    for mib in SIZES_MIB:
        images = max(1, mib * MIB // 2 // (_CHANNELS * _SIDE * _SIDE))
        shape = (images, _SIDE, _SIDE, _CHANNELS)
        case = Case("bn_relu_add", "float16", shape, parameters={"layout": "nhwc"})
        compiled = ("torch_compile",) if mib in {16, 256, 1024} else ()
        goal = Goal(copy=1.03) if mib == 1024 else None
        yield Cell("bn_relu_add", case, mib, (*compiled, "triton", OURS), goal)


def _fused() -> Iterator[Cell]:
    compiled = ("torch_compile", "torch_folded_compile")
    large, middle = (1024, 512, 512, 3), (85, 512, 512, 3)
    case = Case("fused_transform", "float32", large, parameters={"transform": _TRANSFORM})
    goal = Goal(copy=1.0, of={"torch_eager": 11.5, **dict.fromkeys(compiled, 1.95)})
    yield Cell(
        "fused_transform",
        case,
        3072,
        ("torch_eager", *compiled, "cuda_scalar", "triton", OURS),
        goal,
    )
    goal = Goal(copy=1.0, driver=1.11)
    yield Cell(
        "fused_transform", replace(case, shape=middle), 255, (*compiled, "triton", OURS), goal
    )
    for shape, mib in ((large, 768), (middle, 63.75)):
        bytes_case = Case(
            "fused_transform", "uint8", shape,
            parameters={"transform": f"{_TRANSFORM}_255", "dtype": "float32"},
        )  # fmt: skip
        yield Cell("fused_transform", bytes_case, mib, (*compiled, "triton", OURS), Goal(copy=0.95))


GROUPS = {
    "relu": _relu,
    "misaligned": _misaligned,
    "odd lengths": _odd,
    "add": _add,
    "silu": _silu,
    "bn_relu_add": _bn_relu_add,
    "others": _others,
    "fused_transform": _fused,
}
