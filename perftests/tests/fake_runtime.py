"""A CUDA runtime that keeps the last error, for machines without a GPU."""

from __future__ import annotations


class _Names:
    """The call that names an error, with the type of its result as ctypes wants it set."""

    restype: object = None

    def __call__(self, code: int) -> bytes | None:
        assert self.restype is not None, "ctypes would cut a pointer to an int"
        return b"cudaErrorInvalidConfiguration" if code == 9 else None


class Runtime:
    """Its last error, 0 for none, is `kept` until somebody asks."""

    def __init__(self, kept: int = 0) -> None:
        self.kept = kept
        self.cudaGetErrorName = _Names()

    def cudaGetLastError(self) -> int:
        code, self.kept = self.kept, 0
        return code
