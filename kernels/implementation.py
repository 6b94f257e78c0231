"""One way to compute a kernel: what all of them share, and the plain torch ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kernels import first_call
from kernels.cases import Case, Scalar
from kernels.definition import Definition
from kernels.inputs import as_tensor, like, stream_of

ROOT = Path(__file__).resolve().parent.parent
_OF_TORCH = (
    "torch's own kernels come compiled",
    "torch loads its kernels as they are launched and does not tell when",
)
"""Why nothing is told of compiling and loading."""


class Implementation(ABC):
    """A callable that computes a kernel: tensors in, `out` (or a new tensor) out.

    A call checks its arguments, runs on the current stream of the tensors' device (torch's, or for
    CuPy arrays CuPy's), allocates nothing when `out` is given and waits for nothing. CuPy and NumPy
    arrays are used in place.
    """

    def __init__(
        self,
        definition: Definition,
        name: str,
        source: Path,
        dtypes: Sequence[torch.dtype] | None = None,
    ) -> None:
        self.definition = definition
        self.kernel = definition.name
        self.name = name
        self.dtypes = tuple(dtypes or definition.dtypes)
        self.source_file = source.resolve().relative_to(ROOT).as_posix()
        self._arity = len(definition.inputs)
        self._check = definition.check
        self._defaults = dict(definition.parameters)
        self._all_dtypes = self.dtypes == definition.dtypes

    def __repr__(self) -> str:
        return f"{self.kernel}/{self.name}"

    def unavailable(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return in one line why this cannot run on `device` with `dtype`, or None when it can."""
        if dtype not in self.dtypes:
            return f"{self!r} does not take {str(dtype).removeprefix('torch.')}"
        if device.type not in {"cpu", "cuda"}:
            return f"{self!r} runs on cuda and cpu, not on {device.type}"
        return None

    def fingerprint(self, device: torch.device, dtype: torch.dtype) -> str | None:  # noqa: ARG002 - overridden
        """Return the digest of the machine code that runs, or None where it is not ours to know."""
        return None

    def module_key(self, device: torch.device, dtype: torch.dtype) -> Hashable:  # noqa: ARG002 - overridden
        """Return what `prepare` makes: equal where one module serves both; None if nothing is."""
        return None

    def prepare(self, device: torch.device, dtype: torch.dtype) -> None:
        """Compile and load the module that a call needs; raise BuildError where that fails."""
        raise NotImplementedError(f"{self!r} has no module to prepare")

    def first_call(self, call: Callable[[], object]) -> first_call.Parts:
        """Make the first call at a case, `call`, which waits for the device; return its parts."""
        return first_call.whole(call, *_OF_TORCH)

    def allocates(self, case: Case) -> str | None:  # noqa: ARG002 - overridden
        """Return in one line why a call may allocate by design, None where it never does."""
        return None

    @abstractmethod
    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        """Write `out`; the arguments have been checked."""

    def __call__(self, *inputs: Any, out: Any = None, **parameters: Scalar) -> Any:
        """Compute the kernel and return `out`, or a new tensor of the first input's kind.

        Raises ValueError naming what came and what was expected when the arguments do not fit.
        """
        if torch.compiler.is_compiling():
            return self._traced(inputs, out, parameters)
        if len(inputs) != self._arity:
            self._refuse_arity(inputs)
        for value in inputs:
            if type(value) is not torch.Tensor:
                return self._foreign(inputs, out, parameters)
        if out is not None and type(out) is not torch.Tensor:
            return self._foreign(inputs, out, parameters)
        target, complete = self._admitted(inputs, out, parameters)
        if target.numel():
            self._run(inputs, target, complete)
        return target

    def _admitted(
        self,
        inputs: Sequence[torch.Tensor],
        out: torch.Tensor | None,
        parameters: Mapping[str, Scalar],
    ) -> tuple[torch.Tensor, Mapping[str, Scalar]]:
        """Return the output and all parameters; refuse plain tensors that do not fit."""
        if self._defaults or parameters:
            parameters = self._complete(parameters)
        if not self._all_dtypes and inputs[0].dtype not in self.dtypes:
            raise ValueError(self.unavailable(inputs[0].device, inputs[0].dtype))
        return self._check(inputs, out, parameters), parameters

    def _refuse_arity(self, inputs: Sequence[Any]) -> None:
        names = self.definition.inputs
        raise ValueError(
            f"{self!r} got {len(inputs)} inputs; expected {len(names)}: {', '.join(names)}"
        )

    def _complete(self, parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the parameters, defaults for those not given; refuse unknown names and types."""
        complete = {**self._defaults, **parameters}
        if len(complete) != len(self._defaults):
            raise ValueError(
                f"{self!r} got the parameters {', '.join(parameters)}; "
                f"expected {', '.join(self._defaults) or 'none'}"
            )
        for name, value in parameters.items():
            kind = type(self._defaults[name])
            if not isinstance(value, (int, float) if kind is float else kind):
                raise ValueError(  # noqa: TRY004 - every refusal is of one class
                    f"{self!r}: {name} is {value!r}; expected a {kind.__name__}"
                )
        return complete

    def _foreign(self, inputs: Sequence[Any], out: Any, parameters: Mapping[str, Scalar]) -> Any:
        """Compute on what is not a plain tensor: arrays of other libraries, tensor subclasses."""
        named = zip(inputs, self.definition.inputs, strict=True)
        with stream_of((*inputs, out)):
            tensors = [as_tensor(value, f"{self!r}: {name}") for value, name in named]
            target = None if out is None else as_tensor(out, f"{self!r}: out")
            result = self(*tensors, out=target, **parameters)
            if out is not None:
                return out
            return result if isinstance(inputs[0], torch.Tensor) else like(inputs[0], result)

    def _traced(self, inputs: Sequence[Any], out: Any, parameters: Mapping[str, Scalar]) -> Any:
        """Stand in the graph that torch.compile builds as one operator."""
        from kernels.operators import call_operator

        return call_operator(self, inputs, out, parameters)


class TorchImplementation(Implementation):
    """A function of torch's own operations: `function(*inputs, out=, **parameters)`.

    `temporaries` says why torch may allocate in it, where it may.
    """

    def __init__(
        self,
        definition: Definition,
        name: str,
        source: Path,
        function: Callable[..., Any],
        temporaries: str | None = None,
    ) -> None:
        super().__init__(definition, name, source)
        self._function = function
        self._temporaries = temporaries

    def allocates(self, case: Case) -> str | None:  # noqa: ARG002 - the same at every case
        """Return in one line why a call may allocate by design, None where it never does."""
        return self._temporaries

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        self._function(*inputs, out=out, **parameters)
