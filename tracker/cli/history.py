"""`bandwatch history`: one case over commits."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import click

from tracker.cli.list_ import ORPHAN, PURPOSE, with_rare
from tracker.cli.options import MOST, report_command
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.occasion import purpose
from tracker.orphans import Reach, reach_of, remark
from tracker.queries import (
    Floors,
    Series,
    commits,
    find_case,
    floors,
    runs_by_number,
    series,
    series_list,
)
from tracker.report.columns import (
    COMMIT,
    changed_note,
    commit_values,
    show_change,
    show_fraction,
    show_moment,
    show_rate,
    show_some,
    show_time,
)
from tracker.report.document import Column, Document, Kind, Row, Table, Value
from tracker.report.formats import Format
from tracker.report.hidden import hidden
from tracker.store import Store
from tracker.units import counted, seconds
from tracker.yardsticks import LAUNCH_BOUND, LAUNCH_BOUND_MEANS, is_small

COLUMNS = (
    *COMMIT,
    Column("run", None),
    Column("started", "started (UTC)", Kind.WORD, show_moment, drop=3),
    Column("dirty", None),
    Column("branch", "branch", Kind.CODE, drop=6),
    Column("status", "status", Kind.WORD, drop=5),
    Column("median_s", "time", Kind.NUMBER, show_time),
    Column("floor_s", None),
    Column("empty", "empty", Kind.NUMBER, show_some, machine=False, drop=3),
    Column("launch_bound", None),
    Column("bandwidth_bytes_per_s", "GB/s", Kind.NUMBER, show_rate),
    Column("copy_fraction", None),
    Column("of_copy", "of copy", Kind.NUMBER, machine=False, drop=2),
    Column("bandwidth_change", "since previous", Kind.NUMBER, show_change, drop=1),
    Column("subject", "subject", Kind.TEXT, drop=4),
    PURPOSE,
    ORPHAN,
    *(Column(key, None) for key in ("environment", "complete", "count", "q1_s", "q3_s")),
)


@click.command("history", short_help="Show one case over commits.")
@click.argument("case", nargs=-1, required=True)
@click.option("--gpu", metavar="MODEL", help="The GPU model; needed when there are several.")
@click.option("--branch", metavar="NAME", help="Only runs on this branch.")
@click.option("--dirty", is_flag=True, help="Show runs with uncommitted changes too.")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=30, show_default=True, help="The last so many."
)
@report_command
def command(
    *,
    case: tuple[str, ...],
    gpu: str | None,
    branch: str | None,
    dirty: bool,
    limit: int,
    form: Format,
    config: Config,
) -> Document:
    """Show the results of one case in commit order, oldest first.

    CASE is a fingerprint or its beginning, a label, or words that stand in the label of one case
    only. The last column is the change of bandwidth since the row above, without a verdict: that
    is what `bandwatch check` gives. Beside a small time stands what an empty kernel took by the
    same timer in that run. Where a row is of no run of the suite, a column says for what it was
    measured.

    Example: bandwatch history relu cuda_vector
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        key, found = find_case(store, " ".join(case))
        model = gpu or only_model(store, key, found.label)
        line = series(store, key, model, branch=branch, dirty=dirty, last=limit)
        subjects = {
            sha: commit.subject for sha, commit in commits(store, filter(None, line.sha)).items()
        }
        known = runs_by_number(store, line.number.tolist())
        beside = floors(store, line.result.tolist())
    purposes = [purpose(known[n]) if n in known else None for n in line.number.tolist()]
    reach = reach_of(config.root, filter(None, line.sha.tolist()))
    rows = _rows(line, subjects, reach, purposes, beside)
    return Document(
        kind="history",
        title=f"{found.label} on {model}",
        summary=counted(len(rows), "result") if rows else "no result matches: loosen the filters",
        facts={
            "case": found.label,
            "fingerprint": key,
            "gpu_model": model,
            "results": len(rows),
            "older_hidden": line.older,
            "dirty_hidden": line.changed,
        },
        tables=(
            Table("history", with_rare(COLUMNS, rows), rows, hidden_note=_hidden(line, limit)),
        ),
        notes=(
            *changed_note(rows),
            *_floor_notes(key, rows),
            *_environment_notes(line),
            *remark(reach, line.sha.tolist()),
        ),
    )


def _hidden(line: Series, limit: int) -> str | None:
    """Return the line on older results, and on those with uncommitted changes, that are hidden."""
    clean = len(line) + line.older
    every = clean + line.changed
    room = f" --limit {every}" if every > limit else ""
    parts = (
        hidden(line.older, counted(line.older, "older result"), f"--limit {clean}"),
        hidden(
            line.changed,
            f"{counted(line.changed, 'result')} with uncommitted changes",
            f"--dirty{room}",
        ),
    )
    return "; ".join(filter(None, parts)) or None


def only_model(store: Store, key: str, label: str) -> str:
    """Return the GPU model that a case was measured on; NotFoundError where there are several."""
    models = sorted({info.gpu_model for info in series_list(store) if info.case_key == key})
    if len(models) == 1:
        return models[0]
    raise NotFoundError(
        f"cannot show {label}: measured on {len(models)} GPU models ({', '.join(models)}); "
        "choose one with --gpu"
    )


def _rows(
    line: Series,
    subjects: Mapping[str, str | None],
    reach: Reach,
    purposes: Sequence[str | None],
    beside: Floors,
) -> tuple[Row, ...]:
    rows = []
    before: float | None = None
    for index in range(len(line)):
        rate = _real(line.bandwidth[index])
        change = rate / before - 1 if rate is not None and before else None
        values: dict[str, Value] = {
            **commit_values(str(line.sha[index]) or None, dirty=bool(line.dirty[index])),
            "run": str(line.run_id[index]),
            "started": float(line.started[index]),
            "branch": str(line.branch[index]) or None,
            "status": str(line.status[index]),
            **_measured(line, beside, index),
            "bandwidth_bytes_per_s": rate,
            "bandwidth_change": change,
            "subject": subjects.get(str(line.sha[index])),
            "purpose": purposes[index],
            "left_git": reach.left(str(line.sha[index])),
            "environment": line.environment_keys[int(line.environment[index])],
            "complete": bool(line.complete[index]),
            "count": int(line.count[index]),
            "q1_s": _real(line.q1_s[index]),
            "q3_s": _real(line.q3_s[index]),
        }
        rows.append(Row(values))
        before = rate or before
    return tuple(rows)


def _measured(line: Series, beside: Floors, index: int) -> dict[str, Value]:
    """Return a row's time with what tells how much of it is the launch."""
    time_s, floor_s = float(line.median_s[index]), float(beside.floor_s[index])
    fraction, bound = _real(line.copy_fraction[index]), bool(beside.launch_bound[index])
    share = None if fraction is None else show_fraction(fraction)
    return {
        "median_s": _real(time_s),
        "floor_s": _real(floor_s),
        "empty": seconds(floor_s, 3) if is_small(time_s, floor_s) else None,
        "launch_bound": bound,
        "copy_fraction": fraction,
        "of_copy": LAUNCH_BOUND if bound else share,
    }


def _floor_notes(key: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield an empty kernel's time where the last row's is small, and what launch-bound means."""
    if rows and (empty := rows[-1].values["empty"]):
        told = f"empty kernel, by the same timer in the last row's run: {empty}"
        yield f"{told}; `bandwatch show {key[:12]}` has all that stands beside it"
    if any(row.values["launch_bound"] for row in rows):
        yield f"{LAUNCH_BOUND}: {LAUNCH_BOUND_MEANS}"


def _environment_notes(line: Series) -> tuple[str, ...]:
    count = len(set(line.environment.tolist()))
    if count < 2:
        return ()
    return (f"the rows come from {count} environments: a step between them may be no kernel's",)


def _real(value: float) -> float | None:
    return float(value) if isfinite(value) else None
