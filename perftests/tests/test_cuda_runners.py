"""The hold behind which a cold launch waits: a conversation through the host's memory. No GPU."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from perftests.harness import cuda_runners
from perftests.harness.cuda_kernels import RELEASE_WORD
from perftests.harness.cuda_runners import _Hold

if TYPE_CHECKING:
    import pytest

    from perftests.harness.cuda import CudaDevice


class Device:
    """Holds as the kernel does, in a thread, after `delay_s`; notes how each hold ended."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.ended: list[bool] = []
        self.threads: list[threading.Thread] = []
        self.cupy = self.cuda = self.kernels = self

    def alloc_pinned_memory(self, size: int) -> Any:
        memory = (ctypes.c_int32 * (size // 4))()
        memory.ptr = ctypes.addressof(memory)  # type: ignore[attr-defined]
        return memory

    def holder(self, words: int, longest_ns: int) -> Any:
        def hold(number: int, _log: int, _stream: int) -> None:
            thread = threading.Thread(target=self._hold, args=(words, number, longest_ns * 1e-9))
            self.threads.append(thread)
            thread.start()

        return hold

    def _hold(self, words: int, number: int, longest_s: float) -> None:
        time.sleep(self.delay_s)
        memory = (ctypes.c_int32 * 64).from_address(words)
        memory[0] = number
        limit = time.monotonic() + longest_s
        while memory[RELEASE_WORD] < number and time.monotonic() < limit:
            time.sleep(1e-4)
        self.ended.append(memory[RELEASE_WORD] >= number)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


def held(device: Device) -> _Hold:
    return _Hold(cast("CudaDevice", device))


def test_the_host_waits_for_each_hold_and_then_releases_it() -> None:
    device = Device(delay_s=0.01)
    hold = held(device)
    for turn in range(3):
        hold.enqueue(0, 0)
        began = time.monotonic()
        hold.await_begin()
        assert time.monotonic() - began >= 0.005
        assert len(device.ended) == turn
        hold.release()
        device.join()
        assert device.ended == [True] * (turn + 1)


def test_a_hold_that_nobody_releases_ends_by_itself() -> None:
    device = Device()
    hold = held(device)
    hold.enqueue(0, 0)
    device.join()
    assert device.ended == [False]
    hold.await_begin()  # a launch that waited for the device: the hold has come and gone


def test_a_device_that_never_holds_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_runners, "_LONGEST_WAIT_S", 0.02)
    device = Device(delay_s=0.2)
    hold = held(device)
    hold.enqueue(0, 0)
    began = time.monotonic()
    hold.await_begin()
    assert 0.02 <= time.monotonic() - began < 0.2
    hold.release()
    device.join()
