"""`bandwatch ci` on a project with a history: verdicts, repeats, turns, files, jobs."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tracker.model import Device, Environment
from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project
from tracker.tests.loop.conftest import OUT, Command, outcomes, report
from tracker.tests.loop.fake import FakeMeasure
from tracker.tests.sides import CPU, H200

pytestmark = pytest.mark.usefixtures("no_ci")


def test_the_first_run_of_all_has_no_baseline_and_passes(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    answer = bandwatch("ci")
    assert answer.code == 0
    assert outcomes() == {"relu": "no baseline", "add": "no baseline"}
    with Store.open("sqlite:///.bandwatch/bandwatch.db", read_only=True) as store:
        (run,) = runs(store)
    assert run.sha == fake.git(history, "rev-parse", "HEAD")
    assert run.complete
    assert fake.git(history, "status", "--porcelain") == ""


@pytest.mark.usefixtures("history", "no_processes")
@pytest.mark.parametrize("environment", [CPU, H200], ids=["cpu", "gpu"])
def test_the_report_s_heading_is_true_of_every_device(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    monkeypatch.setattr(fake, "H200", environment)
    monkeypatch.setattr(fake, "BOARD", Device("it", environment.gpu_model))
    shown = bandwatch("ci").out
    assert shown.startswith("Benchmarks\n")
    assert f"\non {environment.gpu_model}" in shown
    for name in ("comment.md", "report.html", "report.json"):
        text = (OUT / name).read_text()
        assert environment.gpu_model in text
        assert "GPU benchmarks" not in text
    assert (OUT / "comment.md").read_text().startswith("### Benchmarks\n")


@pytest.mark.usefixtures("baseline")
def test_rows_that_are_hidden_are_in_the_json_though_nothing_is_recorded(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.cli.ci.TEXT_LIMIT", 1)
    assert "hidden: 2 no change (report.json shows every row)" in bandwatch("ci", "--no-record").out
    assert len(report()["tables"]["verdicts"]) == 2


def test_a_slow_commit_is_measured_again_before_it_is_a_regression(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    answer = bandwatch("ci")
    assert answer.code == 1
    assert outcomes() == {"relu": "regression", "add": "no change"}
    timed = [tests for _, tests, timing in no_processes.calls if timing]
    # The whole suite once, then relu alone in two fresh processes.
    assert timed == [None, (project.RELU,), (project.RELU,)]
    assert "measured again" in answer.out


def test_one_odd_process_is_cleared_by_repeats(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~4")
    fake.commit(baseline, "Unchanged", {"number.txt": "9"})
    once = no_processes.cases
    speeds = json.loads((baseline / fake.SPEEDS).read_text())
    measure = no_processes

    def odd(folder: Path, task: Any, journal: Path) -> Any:
        slow = task.timing and task.tests is None
        (folder / fake.SPEEDS).write_text(json.dumps({**speeds, "relu": 1.1 if slow else 1.0}))
        found = measure(folder, task, journal)
        (folder / fake.SPEEDS).write_text(json.dumps(speeds))
        return found

    monkeypatch.setattr("tracker.loop.workplace.PytestMeasure", lambda settings: odd)
    answer = bandwatch("ci")
    assert once
    assert outcomes()["relu"] != "regression"
    assert answer.code in {0, 3}


def test_a_commit_measured_once_more_is_judged_against_the_day_before(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = json.loads((history / fake.SPEEDS).read_text())
    assert bandwatch("ci").code == 0
    first = report()["facts"]["run"]

    def slower(folder: Path, task: Any, journal: Path) -> Any:
        (folder / fake.SPEEDS).write_text(json.dumps({**speeds, "relu": 1.1 * speeds["relu"]}))
        found = no_processes(folder, task, journal)
        (folder / fake.SPEEDS).write_text(json.dumps(speeds))
        return found

    monkeypatch.setattr("tracker.loop.workplace.PytestMeasure", lambda settings: slower)
    assert bandwatch("ci").code == 1
    rows = {row["kernel"]: row for row in report()["tables"]["verdicts"]}
    # Not against this session's own first process, which would clear everything.
    assert {row["baseline"] for row in rows.values()} == {
        f"newest earlier run of this commit, {report()['facts']['commit'][:12]} ({first})"
    }
    assert rows["relu"]["outcome"] == "regression"


def test_a_second_run_of_a_slow_commit_is_still_judged_against_its_parent(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    for _ in range(2):
        assert bandwatch("ci").code == 1
        assert outcomes()["relu"] == "regression"


def test_by_hand_a_branch_is_judged_against_its_merge_base_as_its_pull_request_will_be(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    base = fake.git(baseline, "rev-parse", "HEAD")
    fake.git(baseline, "branch", "--force", "main", "HEAD")
    fake.git(baseline, "switch", "--quiet", "--create", "feature")
    slow = json.dumps({"relu": 1.1, "add": 1.0})
    for number in range(2):
        # The second commit of the branch is as slow as the first: it must not hide behind it.
        fake.commit(baseline, "Try", {fake.SPEEDS: slow, "number.txt": f"feature {number}"})
        assert bandwatch("ci").code == 1
        assert outcomes()["relu"] == "regression"
        rows = report()["tables"]["verdicts"]
        assert {base[:12] in row["baseline"] for row in rows} == {True}


def test_where_the_merge_base_has_no_result_the_nearest_ancestor_serves_and_it_is_said(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(history, "switch", "--quiet", "--create", "feature")
    for number, told in ((0, "no earlier comparable result"), (1, "judged against the nearest")):
        fake.commit(history, "Try", {"number.txt": f"feature {number}"})
        answer = bandwatch("ci")
        assert told in " ".join(answer.out.split())
    assert outcomes() == {"relu": "no change", "add": "no change"}


def test_only_what_a_keyword_selects_is_measured_and_the_rest_has_not_vanished(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    no_processes.keywords = {"relu": (project.RELU,)}
    answer = bandwatch("ci", "-k", "relu")
    assert outcomes() == {"relu": "no change"}
    assert answer.code == 0
    assert "bandwatch ci --ab -k relu" in (OUT / "comment.md").read_text()
    assert not report()["facts"]["complete"]


@pytest.mark.parametrize("failing", [(project.ADD,), (project.ADD, project.RELU)])
def test_a_test_that_fails_without_a_record_fails_the_whole(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, failing: tuple[str, ...]
) -> None:
    no_processes.failed = dict.fromkeys(failing, "1 of 8 elements wrong @everyone ::error::")
    answer = bandwatch("ci", "--quick")
    assert answer.code == 1
    assert f"{project.ADD} failed: 1 of 8 elements wrong" in " ".join(answer.out.split())
    assert report()["facts"]["verdict"] == "failed"
    assert report()["exit_code"] == 1


@pytest.mark.parametrize("arguments", [(), ("--ab",)])
def test_a_test_that_fails_only_when_it_is_measured_again_fails_the_whole(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, arguments: tuple[str, ...]
) -> None:
    def race(number: int) -> None:
        if number == 2:  # after the check and the first measurement
            no_processes.failed = {project.RELU: "1 of 8 elements wrong"}

    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    no_processes.fail = race
    answer = bandwatch("ci", *arguments)
    assert answer.code == 1
    assert "note: 1 test failed" in answer.out
    assert f"{project.RELU} failed: 1 of 8 elements wrong" in " ".join(answer.out.split())


def test_a_thousand_failed_tests_leave_a_short_report(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    no_processes.failed = {f"perf/test_perf.py::test_{n}": "x" * 2000 for n in range(1000)}
    answer = bandwatch("ci")
    assert answer.code == 1
    assert "1000 tests failed" in answer.out
    assert "990 more failed tests" in answer.out
    assert len((OUT / "comment.md").read_text()) < 20_000


def test_what_could_not_be_decided_fails_nothing_where_that_is_allowed(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    (baseline / fake.SPEEDS).write_text(json.dumps({"relu": 1.03, "add": 1.0}))
    assert bandwatch("ci", "--repeats", "0").code == 3
    assert outcomes()["relu"] == "undecided"
    assert bandwatch("ci", "--repeats", "0", "--allow-undecided").code == 0
    assert "undecided" in report()["summary"]
    # A case that vanished is no doubt about its time.
    no_processes.cases = {project.ADD: no_processes.cases[project.ADD]}
    answer = bandwatch("ci", "--repeats", "0", "--allow-undecided")
    assert answer.code == 3
    assert "bandwatch triage waive PATTERN --until DATE --note TEXT" in " ".join(answer.out.split())


@pytest.mark.usefixtures("baseline")
def test_a_case_that_vanished_passes_where_a_maintainer_says_so(
    no_processes: FakeMeasure, bandwatch: Command
) -> None:
    no_processes.cases = {project.ADD: no_processes.cases[project.ADD]}
    assert bandwatch("ci", "--repeats", "0").code == 3
    answer = bandwatch("ci", "--repeats", "0", "--allow-vanished")
    assert answer.code == 0
    assert "let pass by --allow-vanished" in answer.out
    assert outcomes()["relu"] == "undecided"


def test_what_was_let_pass_does_not_make_doubts_about_others_fail(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    (baseline / fake.SPEEDS).write_text(json.dumps({"relu": 1.0, "add": 1.03}))
    no_processes.cases = {project.ADD: no_processes.cases[project.ADD]}
    asked = ("ci", "--repeats", "0", "--allow-vanished")
    assert bandwatch(*asked).code == 3
    assert bandwatch(*asked, "--allow-undecided").code == 0


def test_uncommitted_changes_are_judged_against_the_commit_below(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    (baseline / fake.SPEEDS).write_text(json.dumps({"relu": 1.1, "add": 1.0}))
    answer = bandwatch("ci")
    assert outcomes() == {"relu": "regression", "add": "no change"}
    assert answer.code == 1
    assert report()["facts"]["dirty"] is True


def test_turns_decide_without_any_stored_baseline(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(history, "switch", "--quiet", "--detach", "main~2")
    answer = bandwatch("ci", "--ab", "--base", "main~3", "--no-record")
    assert answer.code == 1
    assert outcomes() == {"relu": "regression", "add": "no change"}
    assert "measured in turns with" in answer.out
    assert not (history / ".bandwatch/bandwatch.db").exists()


def test_what_the_stored_baseline_cannot_tell_is_measured_in_turns_where_asked(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    slightly = json.dumps({"relu": 1.03, "add": 1.0})
    fake.commit(baseline, "Slightly slower", {fake.SPEEDS: slightly})
    assert bandwatch("ci", "--repeats", "0", "--no-record").code == 3
    assert outcomes() == {"relu": "undecided", "add": "no change"}
    answer = bandwatch("ci", "--ab", "--base", "HEAD^", "--no-record")
    assert outcomes()["relu"] == "regression"
    assert "1 case measured in turns with" in answer.out


def test_a_slow_commit_measured_in_turns_once_more_is_as_slow(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    for _ in range(3):
        assert bandwatch("ci", "--ab").code == 1
        assert outcomes() == {"relu": "regression", "add": "no change"}


def test_turns_are_left_out_of_changed_trees_and_it_is_said(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    (baseline / fake.SPEEDS).write_text(json.dumps({"relu": 1.1, "add": 1.0}))
    answer = bandwatch("ci", "--ab")
    assert answer.code == 1
    assert "cannot be checked out beside the base" in answer.out


def test_all_files_say_the_same(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    bandwatch("ci")
    suite = ET.fromstring((OUT / "junit.xml").read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    comment = (OUT / "comment.md").read_text()
    assert "slower" in comment
    assert "\n\nReproduce: `git switch" in comment  # not in the last item of the list above it
    assert "bandwatch ci --ab" in comment
    assert len(comment) < 65_536
    assert "slower" in (OUT / "report.html").read_text()
    assert report()["exit_code"] == 1


def test_another_job_judges_the_same_from_the_records_alone(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    bandwatch("ci", "--quick")
    here = report()
    moved = tmp_path / "records"
    shutil.copytree(OUT, moved)
    shutil.rmtree(baseline / ".bandwatch")
    answer = bandwatch("ci", "--from", str(moved), "--out", str(tmp_path / "reports"))
    assert answer.code == 1
    assert report(tmp_path / "reports") == here
    # The command to reproduce too: the session knows what it was asked for.
    assert (tmp_path / "reports/comment.md").read_text() == (moved / "comment.md").read_text()
    assert not (baseline / ".bandwatch").exists()


def test_an_empty_folder_is_nothing_measured(
    history: Path, bandwatch: Command, tmp_path: Path
) -> None:
    answer = bandwatch("ci", "--from", str(tmp_path / "none"), "--out", str(tmp_path / "out"))
    assert answer.code == 3
    assert "nothing was measured" in (tmp_path / "out/comment.md").read_text()


@pytest.mark.parametrize(
    "name", ["../../secret.json", "/etc/passwd", "head-0.json/../x", "head-0.yaml", 3]
)
def test_names_of_records_from_outside_are_not_opened(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path, name: object
) -> None:
    moved = tmp_path / "records"
    shutil.copytree(OUT, moved)
    notes = json.loads((moved / "session.json").read_text())
    for entry in notes["entries"]:
        if entry["step"] == "kept head":
            entry["files"] = [name]
    (moved / "session.json").write_text(json.dumps(notes))
    answer = bandwatch("ci", "--from", str(moved))
    assert answer.code == 2
    assert "is no name of a record" in answer.err


def test_records_of_another_commit_are_refused(
    baseline: Path,
    no_processes: FakeMeasure,
    bandwatch: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_SHA", "f" * 40)
    answer = bandwatch("ci", "--from", str(OUT))
    assert answer.code == 2
    assert "expected those of ffff" in answer.err
