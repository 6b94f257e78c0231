"""A project with a store of five commits, and the command run inside it."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tracker.cli.main import main
from tracker.model import Run
from tracker.record import dump_run
from tracker.store import Store
from tracker.tests.factory import make_case, make_result, make_run

# The fourth commit makes ReLU a fifth slower.
FACTORS = (1.0, 1.0, 1.0, 1.2)


@dataclass(frozen=True)
class Answer:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


def run_of_commit(number: int, factor: float = 1.0) -> Run:
    rng = np.random.default_rng(number)

    def sample(scale: float) -> list[float]:
        return [float(t) for t in 1.3e-4 * scale * np.exp(rng.normal(0, 0.002, 40))]

    cases = (
        (make_case("relu", "cuda_vector"), factor),
        (make_case("add", "cuda_vector"), 1.0),
        (make_case("add", "torch"), 1.0),
    )
    results = tuple(
        make_result(case, sample(scale), median_cycles=257_400.0 * scale, warnings=())
        for case, scale in cases
    )
    return make_run(f"run-of-commit-{number}", number, results=results, notes=())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with settings, the working folder of the test."""
    monkeypatch.delenv("BANDWATCH_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "pyproject.toml").write_text("[tool.bandwatch]\nstore = 'sqlite:///runs.db'\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def four_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with four runs, made once."""
    path = tmp_path_factory.mktemp("four-runs") / "runs.db"
    with Store.open(str(path)) as store:
        for number, factor in enumerate(FACTORS, start=1):
            store.record(run_of_commit(number, factor))
    return path


@pytest.fixture
def filled(project: Path, four_runs: Path) -> Path:
    """The project with four runs in its store and one as a file."""
    shutil.copy(four_runs, project / "runs.db")
    (project / "run.json").write_text(json.dumps(dump_run(run_of_commit(5))))
    return project


@pytest.fixture
def bandwatch(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process."""

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run
