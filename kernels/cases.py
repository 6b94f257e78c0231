"""What is checked and what is timed, as data: shapes, dtypes, alignments, each with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import torch

Scalar = str | int | float | bool
TIERS = ("correctness", "quick", "default")
MIB = 1 << 20
_NONE: Mapping[str, Scalar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Case:
    """One problem for every implementation of a kernel.

    `dtype` is that of the data inputs. Offsets are in elements from a 16-byte boundary, one for
    each input; an empty tuple means none. `reason` says why the case is kept.
    """

    kernel: str
    dtype: str
    shape: tuple[int, ...]
    input_offsets: tuple[int, ...] = ()
    output_offset: int = 0
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: _NONE, hash=False)
    reason: str = ""
    tier: str = "correctness"

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of the data inputs, as torch names it."""
        found = getattr(torch, self.dtype)
        assert isinstance(found, torch.dtype)
        return found

    @property
    def alignment(self) -> str:
        """Text for people and keys: "aligned", "in+1 out+0"; "in+1,0 out+0" for unlike inputs."""
        if not any(self.input_offsets) and not self.output_offset:
            return "aligned"
        offsets = self.input_offsets or (0,)
        inputs = offsets[:1] if len(set(offsets)) == 1 else offsets
        return f"in+{','.join(map(str, inputs))} out+{self.output_offset}"

    @property
    def label(self) -> str:
        """Short name, such as `relu float32 [1027] in+1 out+0`."""
        extra = [f"{name}={value}" for name, value in sorted(self.parameters.items())]
        odd = [] if self.alignment == "aligned" else [self.alignment]
        return " ".join(
            [self.kernel, self.dtype, f"[{'x'.join(map(str, self.shape))}]", *odd, *extra]
        )


# Bytes of one input, and why.
_SIZES = {
    ("cuda", "quick"): ((16 * MIB, "between launch cost and the roof"), (256 * MIB, "at the roof")),
    ("cuda", "default"): (
        (MIB, "launch cost"),
        (16 * MIB, "between launch cost and the roof"),
        (64 * MIB, "beyond L2"),
        (256 * MIB, "at the roof"),
    ),
    ("cpu", "quick"): ((MIB, "in cache"),),
    ("cpu", "default"): ((MIB, "in cache"), (8 * MIB, "beyond the cores' own caches")),
}
_MISALIGNED = (
    ((1, 0), "input one element off, as a slice is"),
    ((1, 1), "both off alike: a head to peel"),
    ((1, 3), "off differently: no common alignment"),
)


def elementwise_cases(
    kernel: str,
    dtypes: Sequence[torch.dtype],
    inputs: int,
    device_type: str,
    tier: str,
    parameters: Mapping[str, Scalar] = _NONE,
) -> tuple[Case, ...]:
    """Return the cases of a kernel of `inputs` same-shape inputs.

    Raises ValueError when there is no such tier.
    """
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}: the tiers are {', '.join(TIERS)}")
    if tier == "correctness":
        lengths = [(n, (0, 0), "about a vector, a warp, a tile") for n in (0, 1, 3, 67, 1027, 4097)]
        problems = lengths + [(4099, offsets, reason) for offsets, reason in _MISALIGNED]
        return tuple(
            _case(kernel, dtype, inputs, problem, parameters, tier)
            for dtype in dtypes
            for problem in problems
        )
    found: list[Case] = []
    for dtype in dtypes:
        sizes = _SIZES[device_type, tier]
        largest = sizes[-1][0] // dtype.itemsize
        problems = [(nbytes // dtype.itemsize, (0, 0), reason) for nbytes, reason in sizes]
        wanted = _MISALIGNED[:1] if tier == "quick" else _MISALIGNED
        problems += [(largest, offsets, reason) for offsets, reason in wanted]
        if tier == "default":
            problems.append((largest - 1, (0, 0), "odd length: a scalar tail"))
        found += [_case(kernel, dtype, inputs, problem, parameters, tier) for problem in problems]
    return tuple(found)


def _case(
    kernel: str,
    dtype: torch.dtype,
    inputs: int,
    problem: tuple[int, tuple[int, int], str],
    parameters: Mapping[str, Scalar],
    tier: str,
) -> Case:
    length, (input_offset, output_offset), reason = problem
    return Case(
        kernel=kernel,
        dtype=str(dtype).removeprefix("torch."),
        shape=(length,),
        input_offsets=(input_offset,) * inputs if input_offset or output_offset else (),
        output_offset=output_offset,
        parameters=parameters,
        reason=reason,
        tier=tier,
    )


def cases(kernel: str, device_type: str, tier: str) -> tuple[Case, ...]:
    """Return a kernel's cases for "cuda" or "cpu" in a tier: correctness, quick or default.

    Raises ValueError when the kernel or the tier does not exist.
    """
    from kernels.registry import definition

    return definition(kernel).cases(device_type, tier)
