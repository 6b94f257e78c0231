"""The command that a verdict names, typed as it stands: it does what the sentence asks for."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tracker.tests.loop import fake
from tracker.tests.loop.conftest import OUT, Command, outcomes
from tracker.tests.loop.fake import FakeMeasure
from tracker.tests.sides import H200

pytestmark = pytest.mark.usefixtures("no_ci")


@pytest.fixture
def doubtful(baseline: Path) -> Path:
    """A commit a little slower than its parent: one run of it is too weak a proof."""
    slightly = json.dumps({"relu": 1.03, "add": 1.0})
    fake.commit(baseline, "Slightly slower", {fake.SPEEDS: slightly})
    return baseline


@pytest.fixture
def updated(baseline: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same project and machine, whose driver is another one from now on."""
    monkeypatch.setattr("tracker.tests.loop.fake.H200", replace(H200, driver="999.1"))
    return baseline


def advised(text: str, sentence: str) -> list[str]:
    """Return the words of the command in brackets behind a sentence, without the program."""
    found = re.search(rf"{sentence} \(bandwatch ([^)]+)\)", " ".join(text.split()))
    assert found is not None, text
    return shlex.split(found[1])


def test_the_repeats_that_the_report_of_ci_asks_for_decide_the_case(
    doubtful: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    answer = bandwatch("ci", "--repeats", "0")
    assert outcomes()["relu"] == "undecided"
    command = advised(answer.out, r"measure head (?:\d+ more times|once more) in (?:a )?fresh \w+")
    assert command[:2] == ["ci", "--repeats"]
    assert shlex.join(command) in (doubtful / OUT / "comment.md").read_text().replace("\\", "")
    bandwatch(*command)
    assert outcomes()["relu"] == "regression"


def test_check_names_the_same_command_as_ci(
    doubtful: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    bandwatch("ci", "--repeats", "0")
    assert "(bandwatch ci --repeats " in bandwatch("check").out


def test_the_turns_that_compare_asks_for_decide_the_case(
    doubtful: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    bandwatch("ci", "--repeats", "0")
    compared = bandwatch("compare", "HEAD^", "HEAD")
    assert compared.code == 3
    command = advised(compared.out, "measure both commits in turn")
    shas = [fake.git(doubtful, "rev-parse", name)[:12] for name in ("HEAD^", "HEAD")]
    assert command == ["ab", *shas]
    assert bandwatch(*command).code == 1


def test_of_uncommitted_changes_no_command_is_named_that_refuses_them(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    (baseline / fake.SPEEDS).write_text(json.dumps({"relu": 1.03, "add": 1.0}))
    found = bandwatch("ci", "--repeats", "0").out
    assert "(bandwatch ci --repeats " in found
    assert "--ab" not in found
    assert "pytest --benchmark" not in found


def test_the_turns_asked_for_after_a_change_of_driver_decide_every_case(
    updated: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.commit(updated, "Nothing else changed", {"number.txt": "9"})
    answers = [bandwatch("ci", "--repeats", "0"), bandwatch("check")]
    assert set(outcomes().values()) == {"no baseline"}
    for answer in answers:
        assert answer.code == 3
        assert answer.out.count("another environment") == 1
        assert "driver_branch: 580 -> 999" in " ".join(answer.out.split())
        command = advised(answer.out, "measure the base again in this one")
        assert command == ["ci", "--ab"]
    assert bandwatch(*command).code == 0
    assert outcomes() == {"relu": "no change", "add": "no change"}


def test_the_next_commit_after_a_change_of_driver_has_a_baseline_again(
    updated: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    again = bandwatch("ci", "--repeats", "0")  # the very commit that the old driver measured
    assert again.code == 3
    assert "another environment" in again.out
    fake.commit(updated, "Nothing changed", {"number.txt": "9"})
    found = bandwatch("ci", "--repeats", "0")
    assert found.code == 0
    assert "another environment" not in found.out
    assert outcomes() == {"relu": "no change", "add": "no change"}
