"""The frame of the studies: what is found, written, stored, and what one failure costs."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.workload import Workload
from perftests.studies import __main__ as command
from perftests.studies import frame, pictures, recording
from perftests.studies.document import paragraphs
from perftests.studies.frame import Catalogue, Findings, Scope, Study
from perftests.studies.tables import Row, Section, in_unit, slug
from tracker.occasion import purpose
from tracker.queries import runs
from tracker.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def doubled(n: int, *, wrong: bool = False) -> Workload:
    def launch(inputs: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        torch.mul(inputs[0], 3 if wrong else 2, out=out)

    def make_inputs(seed: int) -> tuple[torch.Tensor, ...]:
        return (torch.randn(n, generator=torch.Generator().manual_seed(seed)),)

    return Workload(
        kernel="doubled", implementation="torch", launch=launch, make_inputs=make_inputs,
        reference=lambda inputs: inputs[0].double() * 2, output_shape=(n,),
        output_dtype=torch.float32, bytes_moved=8 * n,
    )  # fmt: skip


def sound(scope: Scope) -> Findings:
    outcome = scope.measure(doubled(4096))
    rows: list[Row] = [{"n": 4096, "time": min(outcome.seconds)}]

    def draw(figure: Any) -> None:
        figure.subplots().plot([1, 2], [1, 2])

    return Findings((Section("Times", "Doubled", rows, {"time": "us"}),), "It holds.", draw)


def breaking(scope: Scope) -> Findings:
    scope.measure(doubled(512, wrong=True))
    raise AssertionError("not reached")


SOUND = Study("sound", "Doubling", "It is fast (source: a book).", sound)
BREAKING = Study("breaking", "Tripling", "It doubles (source: nobody).", breaking)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    def called(*names: str, studies: tuple[Study, ...] = (SOUND,), broken: Any = None) -> int:
        known = Catalogue({study.name: study for study in studies}, broken or {})
        monkeypatch.setattr(frame, "discover", lambda: known)
        out = ["--out", str(tmp_path / "out")]
        return command.main([*names, *out, "--device", "cpu", "--store", f"sqlite:///{tmp_path}/s"])

    return called


def test_a_study_is_written_up_with_its_claim_and_says_that_no_gpu_took_part(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("sound") == 0
    said = capsys.readouterr().out
    assert said.startswith("No GPU took part")
    (path,) = (tmp_path / "out").glob("sound-*.md")
    text = path.read_text()
    assert "**No GPU took part" in text
    assert "**Claim.** It is fast (source: a book)." in text
    assert "**Verdict.** It holds." in text
    assert "`python -m perftests.studies sound --device cpu`" in text  # no machine's paths
    assert str(tmp_path) not in text
    assert f"![Doubling]({path.stem}.png)" in text
    assert "| n | time (us) |" in text
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    kept = json.loads(path.with_suffix(".json").read_text())
    assert kept["sections"][0]["rows"][0]["time"] < 0.1
    assert {"made", "command", "commit", "environment", "device", "claim"} < set(kept)


def test_results_go_into_the_store_as_one_incomplete_run_with_each_case_once(
    run: Callable[..., int], tmp_path: Path
) -> None:
    again = Study("again", "Again", "The same.", sound)
    assert run("all", studies=(SOUND, again)) == 0
    with sqlite3.connect(tmp_path / "s") as store:
        runs = store.execute("select complete, detail from runs").fetchall()
        results = store.execute("select count(*) from results").fetchone()
    assert [complete for complete, _ in runs] == [0]
    assert "python -m perftests.studies all" in runs[0][1]
    assert results == (1,)


def test_a_study_of_the_hosts_pace_goes_before_a_profiler_can_slow_its_launches(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosted = Study("zz", "The host", "A claim.", sound, host=True)
    assert run("sound", "zz", studies=(SOUND, hosted)) == 0
    said = capsys.readouterr().out
    assert said.index("zz: ") < said.index("sound: ")


def test_a_picture_says_by_itself_what_it_is_of(run: Callable[..., int]) -> None:
    figures: list[Any] = []

    def drawn(scope: Scope) -> Findings:
        def draw(figure: Any) -> None:
            figures.append(figure)

        return replace(sound(scope), draw=draw)

    assert run("drawn", studies=(Study("drawn", "Drawn", "A claim.", drawn),)) == 0
    (foot,) = figures[0].texts
    first, second = foot.get_text().split("\n")
    assert re.match(
        r".+ \(small\), 20\d\d-.+, python -m perftests.studies drawn .*at commit ", first
    )
    assert "torch " in second


def test_the_tracker_tells_a_run_of_studies_from_one_of_the_suite(
    run: Callable[..., int], tmp_path: Path
) -> None:
    assert run("sound") == 0
    with Store.open(f"sqlite:///{tmp_path}/s") as store:
        (found,) = runs(store)
    assert purpose(found) == f"{recording.NOTE} (sound)"
    assert purpose(replace(found, notes=("a part of the suite: -k relu",))) is None


def test_an_interrupt_records_what_was_measured_before(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(scope: Scope) -> Findings:
        raise KeyboardInterrupt

    later = Study("zz", "Later", "A claim.", interrupted)
    assert run("all", studies=(SOUND, later)) == 1
    said = capsys.readouterr()
    assert "interrupted" in said.err
    assert "failed: zz" in said.err
    assert "recorded 1 of 1 run " in said.out


def test_a_failing_study_and_one_that_cannot_be_imported_lose_no_other(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("all", studies=(BREAKING, SOUND), broken={"bad": "SyntaxError: x"}) == 1
    said = capsys.readouterr().err
    assert "failed: bad, breaking" in said
    assert "no time for doubled/torch float32 [512] cold" in said
    assert list((tmp_path / "out").glob("sound-*.md"))
    assert not list((tmp_path / "out").glob("breaking-*"))


@pytest.mark.parametrize(
    ("names", "told"), [((), "no study named"), (("nothing",), "no study 'nothing'")]
)
def test_what_is_no_study_is_refused_before_anything_is_measured(
    run: Callable[..., int], names: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        run(*names)
    assert refused.value.code == 2
    assert told in capsys.readouterr().err


def test_modules_with_a_study_are_found_and_a_bad_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "planted_studies"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    good = "from perftests.tests.test_studies import SOUND\n\nSTUDY = SOUND\n"
    (folder / "good.py").write_text(good)
    (folder / "bad.py").write_text("import nowhere_at_all\n\nSTUDY = None\n")
    (folder / "helper.py").write_text("raise RuntimeError('must not be imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = frame.discover(folder, "planted_studies")
    assert found.studies == {"sound": SOUND}
    assert "nowhere_at_all" in found.broken["bad"]


def test_the_studies_of_the_project_are_importable() -> None:
    found = frame.discover()
    assert found.broken == {}
    assert all(study.claim and study.title for study in found.studies.values())


def test_each_of_the_ten_points_names_results_of_studies_that_exist() -> None:
    text = (recording.ROOT / "docs" / "checklist.md").read_text()
    points = re.split(r"^## \d+\. ", text, flags=re.MULTILINE)[1:]
    assert len(points) == 10
    known = {*frame.discover().studies, "roof"}
    for point in points:
        named = re.findall(r"results/([a-z_]+)-nvidia-h200\.md", point)
        assert set(named) <= known
        assert named or "tuning.md" in point


def test_a_part_that_fails_leaves_its_reason_and_no_rows_to_judge() -> None:
    def failing() -> Section:
        raise RuntimeError("no second GPU\nat all")

    section = frame.attempted("Peers", failing)
    assert section.rows == [{"why": "RuntimeError: no second GPU"}]
    assert frame.measured_rows(section) == []


def test_runs_that_the_tracker_refuses_are_kept_as_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="bandwatch record ") as refused:
        recording.record([{"schema": 1, "kind": "run"}], f"sqlite:///{tmp_path}/s")
    kept = str(refused.value).rsplit(" ", 1)[-1]
    assert kept.endswith("run-1.json")


def test_a_run_is_made_for_each_device() -> None:
    def envelope(uuid: str) -> dict[str, Any]:
        result = {"case": {"kernel": "x"}, "n": uuid}
        return {"environment": {"gpu_model": "M"}, "device": {"uuid": uuid}, "result": result}

    header = recording.Header("2026-01-01T00:00:00Z", "c", {"commit": None})
    envelopes = [envelope("a"), envelope("b"), envelope("a")]
    runs = recording.documents(envelopes, header, "2026-01-01T00:01:00Z", ["s"])
    assert [run["device"]["uuid"] for run in runs] == ["a", "b"]
    assert [len(run["results"]) for run in runs] == [1, 1]
    assert runs[1]["run_id"] == runs[0]["run_id"] + ".2"
    assert header.commit == "unknown (no git checkout)"


def test_the_checkout_is_what_the_tracker_would_record() -> None:
    from tracker import git
    from tracker.record.dump import dump_checkout

    theirs, ours = dump_checkout(git.checkout(recording.ROOT, {})), recording.checkout()
    assert ours["commit"] == theirs["commit"]
    assert (ours["branch"], ours["dirty"]) == (theirs["branch"], theirs["dirty"])


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1.5e-6, "us", "1.5"),
        (4.2e12, "TB/s", "4.2"),
        (3 * 2**30, "GiB", "3"),
        (0.125, "%", "12.5%"),
        (2.5, "x", "2.50x"),
        (1234.5, "s", "1234"),
        (0, "MiB", "0"),
        (float("nan"), "us", "-"),
        ("none", "us", "none"),
        (True, "us", "yes"),
    ],
)
def test_values_are_shown_in_their_unit(value: Any, unit: str, expected: str) -> None:
    assert in_unit(value, unit) == expected


def test_rows_may_lack_columns_and_not_finite_values_become_null() -> None:
    section = Section("T", "How", [{"a": 1}, {"b": float("inf")}])
    assert "| 1 | - |" in section.text()
    assert section.document()["rows"] == [{"a": 1}, {"b": None}]


def test_a_long_table_is_folded_with_the_number_of_its_rows() -> None:
    text = Section("All", "Many", [{"n": 1}, {"n": 2}], folded=True).text()
    assert "<details>\n<summary>2 rows</summary>\n\n| n |" in text
    assert text.rstrip().endswith("| 2 |\n\n</details>")


def test_where_files_were_put_is_left_out_of_the_command() -> None:
    said = ["ladder", "--out", "/x/y", "--small", "--store=sqlite:////z", "--out=/w"]
    assert command.command_line(said) == "python -m perftests.studies ladder --small"


def test_a_long_verdict_becomes_a_list_after_its_start() -> None:
    short = "It holds. At 1.5 x. So."
    assert paragraphs(short) == [f"**Verdict.** {short}"]
    text = "It holds at 1.25x. B. relu at 2.5 of 3 GB/s. Half (all). 257 of 7%."
    lines = paragraphs(text)
    assert lines[0] == "**Verdict.** It holds at 1.25x."
    assert lines[2:] == ["- B.", "- relu at 2.5 of 3 GB/s.", "- Half (all).", "- 257 of 7%."]


def test_a_model_makes_a_file_name() -> None:
    assert slug("NVIDIA H200 (141 GB)") == "nvidia-h200-141-gb"


def test_pictures_have_the_colours_of_the_dashboard() -> None:
    from dashboard.palette import LIGHT

    assert LIGHT.lines == pictures.LINES
    assert (LIGHT.text, LIGHT.muted, LIGHT.grid) == (pictures.INK, pictures.MUTED, pictures.GRID)
