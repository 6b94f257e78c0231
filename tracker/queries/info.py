"""What queries give back about runs, GPU models and cases."""

from collections.abc import Mapping
from dataclasses import dataclass

from tracker.model import Case, Checkout, Device, Environment


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run without its results.

    `number` is the store's own id of it; `started` is `started_at` in seconds since 1970;
    `statuses` counts its results by status; `thinned` says that its measurements were pruned.
    """

    number: int
    run_id: str
    started_at: str
    started: float
    finished_at: str | None
    recorded_at: str
    environment: Environment
    environment_key: str
    device: Device
    checkout: Checkout
    complete: bool
    demo: bool
    command: str | None
    ci: Mapping[str, str]
    notes: tuple[str, ...]
    results: int
    statuses: Mapping[str, int]
    thinned: bool

    @property
    def gpu_model(self) -> str:
        """Name of the GPU model, or of the CPU for the backend cpu."""
        return self.environment.gpu_model

    @property
    def sha(self) -> str | None:
        """The commit measured, None outside a checkout."""
        return self.checkout.commit.sha if self.checkout.commit else None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A GPU model in the store: its devices' UUIDs, its runs, and the newest of them."""

    backend: str
    name: str
    devices: tuple[str, ...]
    runs: int
    newest_run_id: str
    newest_started_at: str


@dataclass(frozen=True, slots=True)
class Overview:
    """How much the store holds, at one revision."""

    revision: int
    runs: int
    results: int
    cases: int
    series: int
    commits: int
    models: tuple[ModelInfo, ...]


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """A case on a GPU model in comparable environments; times in seconds since 1970."""

    case: Case
    case_key: str
    backend: str
    gpu_model: str
    environment_key: str
    results: int
    first_started: float
    last_started: float
