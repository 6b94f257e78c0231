"""The study of alarms: what is planted is more work under the same name, each run has a commit."""

from __future__ import annotations

import subprocess
from math import prod
from typing import TYPE_CHECKING

import pytest
import torch

from kernels.cases import Case
from kernels.cost import cost
from kernels.registry import implementations
from perftests import suite
from perftests.studies import alarms
from perftests.studies.planted import grown, slower

if TYPE_CHECKING:
    from pathlib import Path

SUBJECTS = ["Unchanged, run 2", "Unchanged, run 1", "First"]


@pytest.mark.parametrize("loss", [0.01, 0.02, 0.05])
@pytest.mark.parametrize(
    "case",
    [
        Case("relu", "float32", (1 << 26,)),
        Case("add", "float16", (1 << 27,), input_offsets=(1, 1)),
        Case("bn_relu_add", "float32", (334, 56, 56, 64), parameters={"layout": "nhwc"}),
        Case("bn_relu_add", "float16", (668, 64, 56, 56), parameters={"layout": "nchw"}),
        Case("fused_transform", "float32", (85, 512, 512, 3)),
    ],
    ids=str,
)
def test_a_grown_case_has_the_share_more_elements(case: Case, loss: float) -> None:
    more = grown(case, 1 / (1 - loss))
    assert 1 - prod(case.shape) / prod(more.shape) == pytest.approx(loss, abs=0.004)
    assert len(case.shape) == 1 or more.shape[-1] == case.shape[-1]
    assert more.alignment == case.alignment


def test_a_planted_workload_keeps_its_name_and_bytes_and_works_on_more() -> None:
    case = Case("relu", "float32", (1 << 20,))
    torch_relu = next(i for i in implementations("relu") if i.name == "torch")
    plain = suite.workload(torch_relu, case, torch.device("cpu"))
    slow = slower(suite.workload, 0.05)(torch_relu, case, torch.device("cpu"))
    assert slow.label == plain.label
    assert slow.identity_shape == (1 << 20,)
    assert slow.bytes_moved == plain.bytes_moved == cost(case).bytes_moved
    (values,) = slow.make_inputs(1)
    assert values.numel() == slow.output_shape[0] == pytest.approx((1 << 20) / 0.95, rel=0.005)
    out = torch.full(slow.output_shape, torch.nan)
    slow.launch((values,), out)
    assert torch.equal(out, values.clamp_min(0))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First"]):
        alarms._git(folder, *command)
    return tmp_path


def subjects(work: Path, revision: str = "HEAD") -> list[str]:
    """Return the subjects from a revision back to the first commit."""
    done = subprocess.run(
        ["git", "log", "--format=%s", revision],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


def test_each_run_is_of_a_commit_upon_the_last_unchanged_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def fake(plan: alarms.Plan, flags: tuple[str, ...]) -> tuple[int, str]:
        measured.append((subjects(plan.work)[:2], [f for f in flags if "loss=" in f]))
        return 0, "said"

    monkeypatch.setattr(alarms, "_pytest", fake)
    plan = alarms.Plan("sqlite:///x.db", project / "work", 2, 1, (0.01, 0.05))
    alarms.measure(plan)
    assert measured == [
        (SUBJECTS[1:], []),
        (SUBJECTS[:2], []),
        (["Planted loss of 1.00%, run 1", SUBJECTS[0]], ["--planted-loss=0.01"]),
        (["Planted loss of 5.00%, run 1", SUBJECTS[0]], ["--planted-loss=0.05"]),
    ]
    assert subjects(project / "work") == SUBJECTS
    assert subjects(project / "project") == ["First"]
    alarms.measure(plan)
    assert len(measured) == 4, "what is done is not done again"


def test_without_time_nothing_more_is_begun(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alarms, "_pytest", lambda _plan, _flags: (0, ""))
    alarms.measure(alarms.Plan("sqlite:///x.db", project / "work", seconds=0.0))
    assert "no time" in capsys.readouterr().out
    assert subjects(project / "work") == ["First"]
