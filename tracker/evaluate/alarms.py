"""False alarms and planted losses on a real device, from a store that the study of them filled.

    python -m tracker.evaluate.alarms STORE [--out FOLDER]

STORE is a store's address, or an SQLite file packed with xz, as the evidence is. It holds the runs
of `python -m perftests.studies.alarms`: unchanged ones, each of a commit of its own, then ones with
planted losses. Every unchanged run is judged against those before it, every planted one against all
unchanged ones, by the gate and the monitor with the default thresholds.
"""

import argparse
import lzma
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median

from tracker.errors import NotFoundError, StoreError, TrackerError
from tracker.evaluate.share import interval
from tracker.gate import judge_run
from tracker.model import CHANGES, VerdictKind
from tracker.queries import RunInfo, runs
from tracker.report.document import Column, Document, Kind, Row, Table, Tone, Value
from tracker.report.json_ import to_json
from tracker.report.markdown import to_markdown
from tracker.stats.shift import SHORTEST_LEVEL
from tracker.store import Store
from tracker.thresholds import Thresholds
from tracker.units import percent
from tracker.verdict import Policy, Verdict

GOALS = {0.01: 0.90, 0.02: 0.99, 0.05: 1.0}
"""Share of planted losses to be found, by loss."""
MOST_FALSE = 1
_LIMIT = 1 << 20
_FLAG = re.compile(r"--planted-loss=([\d.]+)")


@dataclass(frozen=True, slots=True)
class Tried:
    """One run of the study, judged; `loss` is what was planted, None in an unchanged run.

    `before` counts the unchanged runs before it on the same board.
    """

    info: RunInfo
    loss: float | None
    verdicts: tuple[Verdict, ...]
    before: int

    def count(self, *kinds: VerdictKind) -> int:
        """Return how many verdicts are of these kinds."""
        return sum(verdict.kind in kinds for verdict in self.verdicts)


def loss_of(info: RunInfo) -> float | None:
    """Return the loss that was planted in a run, as its command says."""
    found = _FLAG.search(info.command or "")
    return float(found[1]) if found else None


def try_all(store: Store, policy: Policy) -> tuple[Tried, ...]:
    """Return every run of a store judged, oldest first. Raises NotFoundError for an empty one."""
    found = sorted(runs(store, limit=None, dirty=False), key=lambda info: info.started)
    if not found:
        raise NotFoundError(f"cannot count alarms: {store.name} has no run of a clean tree")
    thresholds = Thresholds(policy)
    judged = (
        judge_run(store, info, thresholds, today=date.fromisoformat(info.started_at[:10]))
        for info in found
    )
    return tuple(
        Tried(gate.run, loss_of(gate.run), gate.verdicts, _before(gate.run, found))
        for gate in judged
    )


def _before(run: RunInfo, found: Sequence[RunInfo]) -> int:
    return sum(
        loss_of(info) is None and info.device.uuid == run.device.uuid and info.started < run.started
        for info in found
    )


def alarms_document(store: Store) -> Document:
    """Return the tables of false alarms and of what was found, by the defaults.

    The unchanged runs are judged a second time as if every commit had changed every kernel's code.
    """
    tried = try_all(store, Policy())
    blind = try_all(store, Policy(same_code_factor=1.0))
    clean = [run for run in tried if run.loss is None]
    false = sum(run.count(*CHANGES) for run in clean)
    rows = [
        _found_row(loss, before, [run for run in tried if (run.loss, run.before) == (loss, before)])
        for loss, before in _losses(tried)
    ]
    first = clean[0].info if clean else tried[0].info
    return Document(
        kind="alarms",
        title=f"False alarms and planted losses: {first.gpu_model}",
        summary=f"{false} false alarms in {len(clean)} unchanged runs"
        f" (goal: at most {MOST_FALSE}); {_told(rows)}",
        facts={
            "gpu_model": first.gpu_model,
            "device": first.device.uuid,
            "started_at": first.started_at,
            "environment": first.environment_key,
            "false_alarms": false,
            "unchanged_runs": len(clean),
        },
        fact_lines=(_where(first), "made by python -m tracker.evaluate.alarms STORE"),
        tables=(
            Table("found", FOUND_COLUMNS, tuple(rows), heading="Planted losses"),
            Table("clean", CLEAN_COLUMNS, _clean_rows(clean, blind), heading="Unchanged runs"),
            Table("false", CALL_COLUMNS, tuple(_calls(clean)), heading="False alarms, by the case"),
            Table(
                "missed",
                CALL_COLUMNS,
                tuple(_missed(tried)),
                heading="Planted and not told as a loss",
            ),
        ),
        notes=_NOTES,
    )


_NOTES = (
    (
        "Each run is a fresh process of the quick suite, of a commit of its own, judged by the "
        "gate with its default thresholds against the runs before it, a planted one against all "
        "unchanged runs."
    ),
    (
        "A planted loss is real work: inputs and outputs grow, the bytes that count stay. Its "
        "code's fingerprint differs, as a slower kernel's would."
    ),
    (
        "Became faster: the library chose another kernel for the larger problem, so no loss was "
        "there to be found. These are told as gains, listed below and left out of the shares."
    ),
    (
        "As if changed: the same runs with the weight of equal machine code switched off, as when "
        "every commit had touched every kernel."
    ),
    (
        "Intervals of found shares are Clopper-Pearson's at 95 %; cases of one process are not "
        "independent, so they are the narrowest that could be claimed."
    ),
)


def _where(info: RunInfo) -> str:
    env = info.environment
    libraries = ", ".join(f"{name} {version}" for name, version in env.libraries.items())
    versions = f"driver {env.driver}, CUDA {env.cuda}, {libraries}"
    return f"{info.started_at[:10]}, {env.gpu_model}, {versions}"


def _losses(tried: Iterable[Tried]) -> list[tuple[float, int]]:
    """Return the losses with the runs before them, the longest past first."""
    found = {(run.loss, run.before) for run in tried if run.loss is not None}
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def _share(value: Value) -> str:
    return percent(float(value)) if isinstance(value, int | float) else "-"


def _signed(value: Value) -> str:
    return percent(float(value), signed=True) if isinstance(value, int | float) else "-"


FOUND_COLUMNS = (
    Column("loss", "planted", Kind.NUMBER, _share),
    Column("before", "unchanged runs before, on this board", Kind.NUMBER),
    Column("processes", "processes", Kind.NUMBER),
    Column("cases", "verdicts", Kind.NUMBER),
    Column("faster", "became faster", Kind.NUMBER),
    Column("found", "found", Kind.NUMBER),
    Column("share", "share", Kind.NUMBER, _share),
    Column("low", "at least", Kind.NUMBER, _share),
    Column("high", "at most", Kind.NUMBER, _share),
    Column("undecided", "undecided", Kind.NUMBER),
    Column("effect", "median effect", Kind.NUMBER, _signed),
    Column("goal", "goal", Kind.NUMBER, _share),
    Column("met", "met", Kind.WORD),
)


def _found_row(loss: float, before: int, tried: Sequence[Tried]) -> Row:
    verdicts = [verdict for run in tried for verdict in run.verdicts]
    found = sum(run.count(VerdictKind.REGRESSION) for run in tried)
    faster = sum(run.count(VerdictKind.IMPROVEMENT) for run in tried)
    lost = len(verdicts) - faster
    low, high = interval(found, lost) if lost else (0.0, 1.0)
    # The goals are meant for a series that has a level.
    goal = GOALS.get(loss) if before >= SHORTEST_LEVEL else None
    share = found / lost if lost else 0.0
    met = None if goal is None else share >= goal
    values: dict[str, Value] = {
        "loss": loss,
        "before": before,
        "processes": len(tried),
        "cases": len(verdicts),
        "faster": faster,
        "found": found,
        "share": share,
        "low": low,
        "high": high,
        "undecided": sum(run.count(VerdictKind.UNDECIDED) for run in tried),
        "effect": _median([v.effect for v in verdicts if v.effect is not None]),
        "goal": goal,
        "met": met,
    }
    return Row(values, Tone.WORSE if met is False else Tone.PLAIN)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _told(rows: Sequence[Row]) -> str:
    parts = [
        f"{_share(row.values['share'])} of {_share(row.values['loss'])} losses found after "
        f"{row.values['before']} runs"
        for row in rows
    ]
    return ", ".join(parts) or "no loss was planted"


CLEAN_COLUMNS = (
    Column("run", "run", Kind.NUMBER),
    Column("id", None),
    Column("board", "board", Kind.WORD),
    Column("cases", "cases", Kind.NUMBER),
    *(Column(key, key, Kind.NUMBER) for key in ("regressions", "improvements", "undecided")),
    Column("as_if_changed", "false alarms as if changed", Kind.NUMBER),
    Column("undecided_for", "undecided for", Kind.TEXT),
)


def _clean_rows(clean: Sequence[Tried], blind: Sequence[Tried]) -> tuple[Row, ...]:
    other = {run.info.number: run for run in blind}
    return tuple(
        Row(
            {
                "run": number,
                "id": run.info.run_id,
                "board": run.info.device.uuid[-4:],
                "cases": len(run.verdicts),
                "regressions": run.count(VerdictKind.REGRESSION),
                "improvements": run.count(VerdictKind.IMPROVEMENT),
                "undecided": run.count(VerdictKind.UNDECIDED),
                "as_if_changed": other[run.info.number].count(*CHANGES),
                "undecided_for": _why(run.verdicts),
            }
        )
        for number, run in enumerate(clean, start=1)
    )


def _why(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(
        verdict.reasons[0].code.value
        for verdict in verdicts
        if verdict.kind is VerdictKind.UNDECIDED
    )
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


CALL_COLUMNS = (
    Column("run", None),
    Column("case", "case", Kind.CODE),
    Column("loss", "planted", Kind.NUMBER, _share),
    Column("verdict", "verdict", Kind.WORD),
    Column("effect", "effect", Kind.NUMBER, _signed),
    Column("p_value", "p", Kind.NUMBER, lambda p: f"{p:.1g}" if isinstance(p, float) else "-"),
    Column("noise", "noise", Kind.NUMBER, _share),
    Column("detectable", "would have shown", Kind.NUMBER, _share),
    Column("reason", "reason", Kind.WORD),
)


def _calls(clean: Sequence[Tried]) -> Iterable[Row]:
    for run in clean:
        for verdict in run.verdicts:
            if verdict.kind in CHANGES:
                yield _call(run, verdict)


def _missed(tried: Sequence[Tried]) -> Iterable[Row]:
    for run in tried:
        for verdict in run.verdicts:
            if run.loss is not None and verdict.kind is not VerdictKind.REGRESSION:
                yield _call(run, verdict)


def _call(run: Tried, verdict: Verdict) -> Row:
    return Row(
        {
            "run": run.info.run_id,
            "case": verdict.case.label,
            "loss": run.loss,
            "verdict": verdict.kind.value,
            "effect": verdict.effect,
            "p_value": verdict.p_value,
            "noise": verdict.noise.sigma if verdict.noise else None,
            "detectable": verdict.detectable,
            "reason": verdict.reasons[0].code.value,
        }
    )


def write_document(document: Document, folder: Path) -> Path:
    """Write the document as Markdown and JSON, named after the GPU model; return the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    model = re.sub(r"[^a-z0-9]+", "-", str(document.facts["gpu_model"]).lower()).strip("-")
    path = folder / f"alarms-{model}.md"
    path.write_text(to_markdown(document, limit=_LIMIT))
    path.with_suffix(".json").write_text(to_json(document))
    return path


@contextmanager
def opened(address: str) -> Iterator[Store]:
    """Open a store to be read, unpacked first where it is packed."""
    if not address.endswith(".xz"):
        with Store.open(address, read_only=True) as store:
            yield store
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "alarms.db"
        try:
            path.write_bytes(lzma.decompress(Path(address).read_bytes()))
        except lzma.LZMAError as error:
            raise StoreError(f"cannot read {address}: not packed with xz ({error})") from error
        with Store.open(str(path), read_only=True) as store:
            yield store


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 2 for a store that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tracker.evaluate.alarms", description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--out", type=Path, help="folder for the tables; else they are printed")
    given = parser.parse_args(arguments)
    try:
        with opened(given.store) as store:
            document = alarms_document(store)
        if given.out is None:
            print(to_markdown(document))
        else:
            print(write_document(document, given.out))
    except (TrackerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
