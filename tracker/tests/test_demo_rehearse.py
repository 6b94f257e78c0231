"""The rehearsal of the loop: its plants still fit the history, and its page says what happened."""

import json
import subprocess
from pathlib import Path

import pytest

from tracker import git
from tracker.demo import recorded_runs, rehearse, rehearsed
from tracker.errors import GitError, RecordError, TrackerError
from tracker.record import write_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """The kernel's folder as it was at the commit that the rehearsal starts from."""
    try:
        sha = git.resolve(rehearse.GOOD, ROOT)
    except GitError:
        pytest.skip("this checkout has no history that reaches the rehearsal's commit")
    folder = tmp_path / "kernels/relu"
    folder.mkdir(parents=True)
    for name in ("cuda.cu", "__init__.py"):
        command = ["git", "-C", str(ROOT), "show", f"{sha}:kernels/relu/{name}"]
        text = subprocess.run(command, check=True, capture_output=True).stdout
        (folder / name).write_bytes(text)
    return tmp_path


@pytest.mark.parametrize("kind", sorted(rehearse.PLANTS))
def test_each_plant_fits_the_commit_that_it_is_put_on(good: Path, kind: str) -> None:
    before = {path.name: path.read_text() for path in (good / "kernels/relu").iterdir()}
    rehearse.plant(good, kind)
    after = {path.name: path.read_text() for path in (good / "kernels/relu").iterdir()}
    assert before != after
    compile(after["__init__.py"], "__init__.py", "exec")


def test_a_kernel_that_a_plant_does_not_fit_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "kernels/relu"
    folder.mkdir(parents=True)
    (folder / "cuda.cu").write_text("// something else\n")
    with pytest.raises(TrackerError, match="cannot plant"):
        rehearse.plant(tmp_path, "hints")


FACTS = {
    "planted": "d" * 40,
    "main": {"exit": 0, "seconds": 31.2},
    "judge": {"exit": 1, "seconds": 2.0},
    "again": {"exit": 0, "seconds": 30.0},
    "found": {
        "culprit": "d" * 40,
        "culprits": ["d" * 40],
        "probability": 0.998,
        "readings": 3,
        "commits": 8,
    },
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "The gate failed the pull request; `bisect` named dddddddddd, the planted commit"),
        ({"judge": {"exit": 0, "seconds": 1.0}}, "The gate did not fail it"),
        ({"again": {"exit": 1, "seconds": 1.0}}, "raised a false alarm"),
        ({"again": None}, "Main was not measured once more."),
        ({"found": None}, "no time was left to look for the commit"),
        ({"found": None, "bisect": {"exit": 3, "seconds": 9.0}}, "`bisect` named no commit"),
        (
            {"found": {"culprit": None, "culprits": ["a" * 40, "b" * 40], "probability": 0.6}},
            "was not certain: most likely aaaaaaaaaa, bbbbbbbbbb at 60.0%, while dddddddddd",
        ),
    ],
)
def test_the_verdict_follows_from_the_facts(change: dict[str, object], told: str) -> None:
    assert told in rehearsed.verdict(FACTS | change)


def test_the_page_has_the_device_the_steps_and_the_transcript(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    write_run(recorded_runs()[0], tmp_path / "main/head-0.json")
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    (tmp_path / "transcript.md").write_text("## Main is measured\n\n```console\n$ bandwatch\n```\n")
    found = rehearsed.read(tmp_path)
    assert found.name == "ci-nvidia-h200"
    text = rehearsed.page(found, ("ci-nvidia-h200-report",))
    assert text.startswith("# The loop around a pull request: NVIDIA H200\n")
    assert "driver 580.159.04" in text
    assert "| main is measured for the first time | 0, no baseline yet | 0 | 31 s |" in text
    assert "![ci-nvidia-h200-report](ci-nvidia-h200-report.png)" in text
    assert "### Main is measured" in text


def test_a_folder_of_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RecordError, match="expected the folder of a rehearsal"):
        rehearsed.read(tmp_path)
    assert rehearsed.main([str(tmp_path), str(tmp_path)]) == 2
    assert "cannot read" in capsys.readouterr().err
