"""How the GPUs of a machine are joined: as the system reports it, and as a pattern proves it.

Nothing here needs more than plain copies and loads between two GPUs.
"""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.environment import gpu_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perftests.harness.session import Bench

PATTERN_BYTES = 256 << 20
SMALL_PATTERN_BYTES = 8 << 20
_REPEATS = 7
_BACK_TO_BACK = 4
"""Copies between two waits, which would else be a part of each."""
_MULTIPLIER = 747_796_405
"""An odd number: it permutes the integers of 32 bits."""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"GPU(\d+)")
_TIMEOUT_S = 30
_LINKS = 36
"""More than any GPU has; NVML refuses those that are not there."""
_PEER_CAPABILITIES = {"read": 0, "write": 1, "NVLink": 2}
"""nvmlGpuP2PCapsIndex_t; of the binding's own names some are tuples, which NVML does not take."""
_NVLINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0"}
"""nvmlNvlinkVersion_t: NVML numbers the versions in order."""
_ALREADY_ENABLED = 704
"""cudaErrorPeerAccessAlreadyEnabled."""


@dataclass(frozen=True)
class Pair:
    """What was found between two GPUs, data going from `source` to `target`.

    `wrong` counts the 4-byte words that a copy did not deliver; `read_wrong` those that a kernel on
    the target read wrongly from the source's memory, None where it was not tried for the reason
    `unread`. Rates in bytes per second; `both` is that of both directions together.
    """

    source: int
    target: int
    link: str
    peer_access: bool
    nvml_says: str
    wrong: int
    rate: float
    both: float
    read_wrong: int | None = None
    read_rate: float | None = None
    unread: str = ""


def pattern(count: int, seed: int, device: torch.device) -> torch.Tensor:
    """Return `count` integers of 32 bits that a seed and the place determine, made on a device."""
    return torch.arange(count, dtype=torch.int32, device=device) * _MULTIPLIER + seed


def wrong_words(found: torch.Tensor, seed: int) -> int:
    """Return how many words differ from the pattern, which is made anew where they are."""
    return int((found != pattern(found.numel(), seed, found.device)).sum())


def matrix_of(text: str) -> dict[tuple[int, int], str]:
    """Return the links between GPUs that `nvidia-smi topo -m` prints, by its own numbers."""
    lines = [_ANSI.sub("", line).split("\t") for line in text.splitlines()]
    header = next((line for line in lines if any(_GPU.fullmatch(w.strip()) for w in line)), [])
    columns = {
        place: int(m[1]) for place, w in enumerate(header) if (m := _GPU.fullmatch(w.strip()))
    }
    found = {}
    for line in lines:
        match = _GPU.fullmatch(line[0].strip())
        if match is None:
            continue
        for place, column in columns.items():
            if place < len(line) and column != int(match[1]):
                found[int(match[1]), column] = line[place].strip()
    return found


def asked(*arguments: str) -> str | None:
    """Return what nvidia-smi prints, None where it is absent or fails."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def links(benches: Sequence[Bench]) -> dict[tuple[int, int], str]:
    """Return nvidia-smi's name of the link between each two devices, by place in `benches`."""
    matrix = asked("topo", "-m")
    listed = asked("--query-gpu=index,uuid", "--format=csv,noheader")
    if matrix is None or listed is None:
        return {}
    numbers = {}
    for line in listed.splitlines():
        number, _, uuid = line.partition(",")
        numbers[uuid.strip()] = int(number)
    known = matrix_of(matrix)
    mine = [numbers.get(gpu_uuid(bench.device), -1) for bench in benches]  # type: ignore[arg-type]
    return {
        (i, j): known[a, b]
        for i, a in enumerate(mine)
        for j, b in enumerate(mine)
        if (a, b) in known
    }


def nvlinks(bench: Bench) -> dict[str, int | str]:
    """Return how many NVLinks of a GPU are up and their version, or why NVML does not tell."""
    watch = bench.watch
    if watch.absent is not None:
        return {"NVLinks up": watch.absent}
    up, versions = 0, set()
    for link in range(_LINKS):
        try:
            state = watch.nvml.nvmlDeviceGetNvLinkState(watch.handle, link)
            if state:
                up += 1
                number = int(watch.nvml.nvmlDeviceGetNvLinkVersion(watch.handle, link))
                versions.add(nvlink_version(number))
        except watch.nvml.NVMLError:
            continue
    return {"NVLinks up": up, "version": ", ".join(sorted(versions)) or "-"}


def nvlink_version(number: int) -> str:
    """Return the version that a number of NVML's stands for, the number itself where it is new."""
    return _NVLINK_VERSIONS.get(number, f"unknown, NVML's number {number}")


def nvml_status(source: Bench, target: Bench) -> str:
    """Return what NVML says of reading peer memory, and whether over NVLink."""
    nvml = source.watch.nvml
    if nvml is None or target.watch.handle is None:
        return "NVML is absent"
    told = []
    for name, index in _PEER_CAPABILITIES.items():
        try:
            status = nvml.nvmlDeviceGetP2PStatus(source.watch.handle, target.watch.handle, index)
        except nvml.NVMLError as error:
            return f"NVML refused: {error}"
        if status == nvml.NVML_P2P_STATUS_OK:
            told.append(name)
    return ", ".join(told) or "no peer access"


def pairs(benches: Sequence[Bench], nbytes: int) -> Iterator[Pair]:
    """Yield what is found between each two GPUs, in both directions."""
    named = links(benches)
    sends, receives = (
        [torch.empty(nbytes // 4, dtype=torch.int32, device=b.device.device) for b in benches]
        for _ in range(2)
    )
    for i, source in enumerate(benches):
        for j, target in enumerate(benches):
            if i != j:
                buffers = sends[i], receives[j], sends[j], receives[i]
                yield _pair((i, j), source, target, buffers, named)


def _pair(
    numbers: tuple[int, int],
    source: Bench,
    target: Bench,
    buffers: tuple[torch.Tensor, ...],
    named: Mapping[tuple[int, int], str],
) -> Pair:
    sent, received, back, returned = buffers
    seed = 1 + 1009 * numbers[0] + 9176 * numbers[1]
    devices = source.device.device, target.device.device
    sent.copy_(pattern(sent.numel(), seed, devices[0]))
    received.fill_(-1)
    _wait(devices)
    received.copy_(sent, non_blocking=True)
    _wait(devices)
    wrong = wrong_words(received, seed)
    access = torch.cuda.can_device_access_peer(devices[1], devices[0])
    rate = nbytes_of(sent) / copy_s([(sent, received)])
    both = 2 * nbytes_of(sent) / copy_s([(sent, received), (back, returned)])
    read: dict[str, Any] = {"unread": "no peer access is reported"}
    if access:
        read = _read(target, source, sent, received, seed)
    return Pair(
        *numbers,
        link=named.get(numbers, "unknown: nvidia-smi does not tell"),
        peer_access=access,
        nvml_says=nvml_status(target, source),
        wrong=wrong,
        rate=rate,
        both=both,
        **read,
    )


def nbytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()


def copy_s(copies: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Return the median time of copies between GPUs at once, each in streams of its own."""
    streams = [
        (torch.cuda.Stream(source.device), torch.cuda.Stream(target.device))
        for source, target in copies
    ]
    devices = [tensor.device for pair in copies for tensor in pair]
    took = []
    for _ in range(_REPEATS + 1):
        _wait(devices)
        began = time.perf_counter()
        for _ in range(_BACK_TO_BACK):
            for (source, target), (out, into) in zip(copies, streams, strict=True):
                with torch.cuda.stream(into), torch.cuda.stream(out):
                    target.copy_(source, non_blocking=True)
        _wait(devices)
        took.append((time.perf_counter() - began) / _BACK_TO_BACK)
    return median(took[1:])


def _wait(devices: Sequence[torch.device]) -> None:
    for device in dict.fromkeys(devices):
        torch.cuda.synchronize(device)


def _read(
    reader: Bench, owner: Bench, sent: torch.Tensor, received: torch.Tensor, seed: int
) -> dict[str, Any]:
    """Let a kernel on one GPU read the other's memory: access itself, no copy of the driver's."""
    gpu: Any = reader.device
    runtime = gpu.runtime
    received.fill_(-1)
    size = nbytes_of(sent)
    _wait((sent.device, received.device))
    with gpu.stream() as stream:
        try:
            runtime.deviceEnablePeerAccess(owner.device.device.index)
        except runtime.CUDARuntimeError as error:
            if error.status != _ALREADY_ENABLED:
                return {"unread": f"peer access was refused: {error}"}
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        gpu.kernels.copy(sent.data_ptr(), received.data_ptr(), size)
        start.record(stream)
        for _ in range(_REPEATS):
            gpu.kernels.copy(sent.data_ptr(), received.data_ptr(), size)
        stop.record(stream)
        gpu.synchronize()
    seconds = float(start.elapsed_time(stop)) * 1e-3 / _REPEATS
    return {"read_wrong": wrong_words(received, seed), "read_rate": size / seconds}
