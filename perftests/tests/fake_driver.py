"""A CUDA driver whose device can be lost, for machines without a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Driver:
    """The calls that ask whether a device is lost. `told` are the answers to each wait in turn.

    `started` is false where nobody has initialised the driver, `used` lists the devices with a
    primary context, `lost` those that answer every wait with 700, an illegal address.
    """

    devices: int = 1
    started: bool = True
    used: tuple[int, ...] = (0,)
    lost: tuple[int, ...] = ()
    told: list[int] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    retained: int = 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0 if self.started else 3

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal
        return 0

    def cuDevicePrimaryCtxGetState(self, device: Any, flags: Any, active: Any) -> int:
        active._obj.value = device.value in self.used
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        assert device.value in self.used, "asking must make no context"
        self.retained += 1
        context._obj.value = 1 + device.value
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.current.append(context.value - 1)
        return 0

    def cuCtxSynchronize(self) -> int:
        if self.told:
            return self.told.pop(0)
        return 700 if self.current[-1] in self.lost else 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.current.pop()
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device: Any) -> int:
        self.retained -= 1
        return 0

    def cuGetErrorName(self, code: int, name: Any) -> int:
        name._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS" if code == 700 else None
        return 0
