"""A sample project in git whose tests leave given records, and the records."""

import json
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.model import Correctness, Device, Environment, Status
from tracker.queries import RunInfo, results, runs
from tracker.record import Envelope, dump_envelope
from tracker.store import Store
from tracker.tests.factory import make_case, make_result

# A run inside this process forgets what it loaded: numpy cannot load twice, the others take long.
for module in (
    "tracker.session",
    "tracker.report.text",
    "alembic.command",
    "rich.segment",
    "sqlalchemy.dialects.postgresql",
):
    import_module(module)

CPU = Environment(backend="cpu", gpu_model="Test CPU, 2 threads", libraries={"torch": "2.13.0"})
BOARD = Device("cpu-1", "Test CPU")
# A GPU's noise is small enough for verdicts after two runs.
H200 = Environment(backend="cuda", gpu_model="NVIDIA H200", driver="580.95", cuda="13.0")
GPU = Device("GPU-1", "NVIDIA H200")
SUITE = """
import json, pathlib, sys
import pytest
RECORDS = json.loads(pathlib.Path(__file__).with_name("records.json").read_text())

@pytest.mark.parametrize("name", sorted(RECORDS))
def test_case(name, record_property):
    record_property("bandwatch", RECORDS[name]["record"])
    exec(RECORDS[name]["then"])
"""


def envelope(
    kernel: str = "relu",
    factor: float = 1.0,
    environment: Environment = CPU,
    device: Device = BOARD,
    seed: int = 1,
    **more: Any,
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sample = [float(t) for t in 1e-3 * factor * np.exp(rng.normal(0, 0.002, 40))]
    values = {"median_cycles": None, "warnings": (), "test": None} | more
    result = make_result(make_case(kernel, n=1 << 16), sample, **values)
    return dump_envelope(Envelope(environment, device, result))


def on_gpu(kernel: str = "relu", factor: float = 1.0, seed: int = 1) -> dict[str, Any]:
    return envelope(kernel, factor, H200, GPU, seed)


def wrong(kernel: str = "relu") -> dict[str, Any]:
    return envelope(
        kernel,
        status=Status.INCORRECT,
        measurements_s=(),
        summary=None,
        correctness=Correctness(checked=True, passed=False, detail="3 elements differ"),
    )


class Sandbox:
    """A sample project in git with a suite that leaves given records."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path
        self.git("init", "--quiet", "--initial-branch=main")
        pytester.makepyprojecttoml("[tool.bandwatch]\nsuite = ['suite']\n")
        pytester.mkdir("suite").joinpath("test_suite.py").write_text(SUITE)
        (self.folder / ".gitignore").write_text(
            "*.json\n__pycache__/\n.pytest_cache/\n.benchmarks/\n"
        )
        self.commit()

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True
        )

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")

    def records(self, then: Mapping[str, str] | None = None, **records: dict[str, Any]) -> None:
        actions = then or {}
        data = {
            name: {"record": record, "then": actions.get(name, "pass")}
            for name, record in records.items()
        }
        (self.folder / "suite/records.json").write_text(json.dumps(data))

    def run(self, *arguments: str, subprocess: bool = False) -> pytest.RunResult:
        run = (
            self.pytester.runpytest_subprocess if subprocess else self.pytester.runpytest_inprocess
        )
        # Hypothesis would be loaded anew for its summary, two seconds each time.
        return run("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments)

    @property
    def file(self) -> Path:
        return self.folder / ".bandwatch/bandwatch.db"

    def stored(self) -> tuple[RunInfo, ...]:
        with Store.open(str(self.file), read_only=True) as store:
            return runs(store)

    def statuses(self) -> dict[str, tuple[str, int]]:
        with Store.open(str(self.file), read_only=True) as store:
            found = results(store, runs(store)[0])
        return {r.case.kernel: (r.status.value, len(r.measurements_s)) for r in found}


def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, columns: int) -> Sandbox:
    """Return a sandbox that sees no store, no CI and no GPU of this machine."""
    for name in ("BANDWATCH_STORE", "BANDWATCH_TEAM_STORE", "GITHUB_ACTIONS", "GITLAB_CI", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("tracker.session.has_nvidia_gpu", lambda: False)
    return Sandbox(pytester)
