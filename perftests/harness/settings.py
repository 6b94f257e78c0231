"""What the flags decide, as one frozen value built once a session."""

from __future__ import annotations

from dataclasses import dataclass, field

from perftests.harness.errors import SettingError
from perftests.harness.stop import StopRule

MODES = ("cold", "hot", "rotated")
GPU_RULE = StopRule(resolution_s=7e-9)
"""A process shifts the times of all its launches by some 0.03 us: see docs/how-it-measures.md."""
CPU_RULE = StopRule(target=5e-3, min_samples=7, settle_samples=40, max_samples=400, max_seconds=0.4)
QUICK_SHARE = 0.4
"""Part of the usual time cap that `--bandwatch-quick` leaves."""
_COOLING_S = 12.0
"""What a session waits in all for a device that slows itself: half of its sampling time."""
_FRESH_SEED = 1_000_003


@dataclass(frozen=True)
class Settings:
    """How to measure. Times in seconds; a cap of None means the device's default.

    `timing` false means: correctness links only, on the small form of each workload. `profile`
    means: the first links, then one launch between the marks that a profiler waits for.
    """

    timing: bool = True
    quick: bool = False
    max_seconds: float | None = None
    max_samples: int | None = None
    lock_seconds: float = 120.0
    energy: bool = False
    ncu: bool = False
    profile: bool = False
    seed: int = 20261129
    modes: tuple[str, ...] = field(default=("cold",))

    @property
    def fresh_seed(self) -> int:
        """The seed of the inputs that are checked after the timed loop."""
        return self.seed + _FRESH_SEED

    @property
    def cooling_s(self) -> float:
        """Seconds that a session may wait in all for a device that slowed itself."""
        return _COOLING_S * (QUICK_SHARE if self.quick else 1.0)

    def rule(self, kind: str) -> StopRule:
        """Return the stop rule for a device kind, "cuda" or "cpu", with the flags applied."""
        base = GPU_RULE if kind == "cuda" else CPU_RULE
        seconds = base.max_seconds * (QUICK_SHARE if self.quick else 1.0)
        return StopRule(
            target=base.target * (2.0 if self.quick else 1.0),
            resolution_s=base.resolution_s * (2.0 if self.quick else 1.0),
            min_samples=min(base.min_samples, self.max_samples or base.min_samples),
            settle_samples=base.settle_samples,
            max_samples=self.max_samples or base.max_samples,
            max_seconds=self.max_seconds or seconds,
        )


def known_mode(mode: str) -> str:
    """Return a cache mode; raise SettingError for what is none."""
    if mode not in MODES:
        raise SettingError(f"cannot measure in mode {mode!r}; expected one of {', '.join(MODES)}")
    return mode


def parse_modes(text: str) -> tuple[str, ...]:
    """Return the cache modes named in a comma-separated flag.

    Raises SettingError for an unknown or an empty name.
    """
    return tuple(dict.fromkeys(known_mode(part.strip()) for part in text.split(",")))
