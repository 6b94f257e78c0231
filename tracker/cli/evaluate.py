"""`bandwatch evaluate`: how often the decisions err, by simulation or on the store's own series."""

from collections.abc import Iterator, Sequence
from itertools import islice

import click
import numpy as np

from tracker.cli.options import note, refuse_idle, report_command
from tracker.config import Config
from tracker.evaluate.replay import Power, power
from tracker.evaluate.synthetic import Figure, figures
from tracker.model import Status
from tracker.queries import SeriesInfo, series, series_list
from tracker.report.columns import show_fraction
from tracker.report.document import ABSENT, Column, Document, Kind, Row, Table, Tone, Value
from tracker.report.formats import Format
from tracker.report.hidden import hidden
from tracker.store import Store
from tracker.suite import SUITE_RATE
from tracker.units import percent, significant

_WEEK_S = 7 * 86400.0
_GOOD = (Status.OK, Status.NOISY)


@click.command("evaluate", short_help="Measure how often the decisions err.")
@click.option(
    "--synthetic", is_flag=True, help="Simulate series with known truth instead of reading a store."
)
@click.option(
    "--series",
    "count",
    type=click.IntRange(10),
    default=500,
    show_default=True,
    help="With --synthetic: at least so many series behind each figure; 500 take twenty minutes.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all randomness."
)
@click.option("--gpu", metavar="MODEL", help="Only series of this GPU model.")
@click.option("--limit", type=click.IntRange(1), default=None, help="At most so many series.")
@report_command
def command(
    *,
    synthetic: bool,
    count: int,
    seed: int,
    gpu: str | None,
    limit: int | None,
    form: Format,
    config: Config,
) -> Document:
    """Measure how often the decisions err.

    On a store: for each series its noise, the smallest loss that it could have shown, and the
    false alarms to expect, by replaying it with planted drops. With --synthetic: the table of
    error rates of every rule on simulated noise, with the goal of each figure.

    Example: bandwatch evaluate --limit 3
    """
    del form
    if synthetic:
        refuse_idle("--synthetic reads no store", "gpu", "limit", "store")
        return synthetic_document(_told(figures(seed, count)), seed, count)
    refuse_idle("a store's own series are replayed; --synthetic makes some", "count")
    with Store.open(config.store.url, read_only=True) as store:
        listed = series_list(store, gpu_model=gpu)
        rng = np.random.default_rng(seed)
        found = [(info, p) for info in islice(listed, limit) if (p := _power(store, info, rng))]
        return store_document(found, _runs_a_week(listed), len(listed), limit)


def _told(found: Iterator[Figure]) -> list[Figure]:
    """Return the figures, telling each as it comes: the table takes minutes."""
    told = []
    for figure in found:
        note(f"{figure.rule}, {figure.noise}, {figure.what}: {_shown(figure.value)}")
        told.append(figure)
    return told


def _shown(value: Value) -> str:
    return significant(float(value), 3) if isinstance(value, int | float) else ABSENT


def _percent(value: Value) -> str:
    return percent(float(value)) if isinstance(value, int | float) else ABSENT


SYNTHETIC_COLUMNS = (
    Column("rule", "rule", Kind.TEXT),
    Column("noise", "noise of 1 %", Kind.TEXT),
    Column("what", "what", Kind.TEXT),
    Column("value", "measured", Kind.NUMBER, _shown),
    Column("between", "95 % interval", Kind.NUMBER, machine=False),
    Column("goal", "goal", Kind.WORD, machine=False),
    Column("met", "met", Kind.WORD),
    Column("series", "series", Kind.NUMBER),
    *(Column(key, None) for key in ("most", "least", "unit")),
)


_PROTOCOL = (
    "clean series grow from 20 to 100 runs, drops follow 40 clean runs; the noise is 1 % of the "
    "level; the gate judges one run of a whole suite, each case after 20 runs of its level; one "
    "setting serves every row"
)


def synthetic_document(found: Sequence[Figure], seed: int, count: int) -> Document:
    """Return the table of simulated error rates with what was missed."""
    missed = [figure for figure in found if figure.met is False]
    goals = sum(figure.met is not None for figure in found)
    summary = f"{goals - len(missed)} of {goals} goals met; seed {seed}"
    return Document(
        kind="evaluation",
        title="Error rates of the decisions",
        summary=summary,
        facts={"seed": seed, "series": count, "goals": goals, "missed": len(missed)},
        fact_lines=(
            f"made by bandwatch evaluate --synthetic --series {count} --seed {seed}",
            _PROTOCOL,
        ),
        tables=(Table("figures", SYNTHETIC_COLUMNS, tuple(map(_figure_row, found))),),
        notes=tuple(f"missed: {f.rule}, {f.noise}, {f.what}" for f in missed),
    )


def _figure_row(figure: Figure) -> Row:
    values: dict[str, Value] = {
        "rule": figure.rule,
        "noise": figure.noise,
        "what": figure.what,
        "value": figure.value,
        "between": _between(figure),
        "goal": _goal(figure),
        "met": figure.met,
        "series": figure.series,
        "most": figure.most,
        "least": figure.least,
        "unit": figure.unit,
    }
    return Row(values, Tone.WORSE if figure.met is False else Tone.PLAIN)


def _between(figure: Figure) -> str | None:
    if figure.between is None:
        return None
    return " to ".join(f"{share:.2g}" for share in figure.between)


def _goal(figure: Figure) -> str | None:
    if figure.most is not None:
        return f"at most {_shown(figure.most)}"
    return f"at least {_shown(figure.least)}" if figure.least is not None else None


STORE_COLUMNS = (
    Column("case", "case", Kind.CODE),
    Column("gpu_model", "GPU model", Kind.TEXT, drop=2),
    Column("runs", "runs", Kind.NUMBER),
    Column("changes", "changes", Kind.NUMBER, drop=1),
    Column("noise", "noise", Kind.NUMBER, _percent),
    Column("gate_loss", "gate shows", Kind.NUMBER, show_fraction),
    Column("monitor_loss", "monitor finds", Kind.NUMBER, show_fraction),
    Column("false_alarms", "false alarms per 100 runs", Kind.NUMBER, _shown),
    *(Column(key, None) for key in ("fingerprint", "environment")),
)


def store_document(
    found: Sequence[tuple[SeriesInfo, Power]], runs_a_week: float, listed: int, limit: int | None
) -> Document:
    """Return what each series could have shown, and the suite's false alarms to expect a week.

    `listed` series are in the store, of which `limit` were looked at.
    """
    rest = 0 if limit is None else max(0, listed - limit)
    rates = [p.false_alarms for _, p in found if p.false_alarms is not None]
    # The gate calls something in at most this share of unchanged suites, one or more cases.
    gate = runs_a_week * SUITE_RATE
    weekly = runs_a_week * sum(rates) / 100 + gate if rates else None
    short = sum(p.false_alarms is None for _, p in found)
    told = "unknown" if weekly is None else significant(weekly, 2)
    return Document(
        kind="power",
        title="What the series could have shown",
        summary=f"{len(found)} series; {told} false alarms expected a week in all",
        facts={
            "series": len(found),
            "runs_a_week": runs_a_week,
            "false_alarms_a_week": weekly,
            "gate_false_alarms_a_week": gate,
            "too_short": short,
        },
        tables=(
            Table(
                "series",
                STORE_COLUMNS,
                tuple(map(_power_row, found)),
                hidden_note=hidden(rest, f"{rest} further series", f"--limit {listed}"),
            ),
        ),
        notes=_power_notes(short, listed - rest - len(found), runs_a_week),
    )


def _power_notes(short: int, untrusted: int, runs_a_week: float) -> tuple[str, ...]:
    notes = (
        "gate shows: the smallest loss that one new run would show against the newest level",
        "monitor finds: the smallest planted drop found within five runs in 4 of 5 replays",
        f"{runs_a_week:.1f} runs of each series a week so far",
        f"the gate is held to call something falsely in {percent(SUITE_RATE)} of the runs at most",
    )
    few = f"{short} series are too short for a replay, which takes 18 runs"
    none = f"{untrusted} series have no trusted run, so nothing could be said of them"
    return (*notes, *((few,) if short else ()), *((none,) if untrusted else ()))


def _power_row(item: tuple[SeriesInfo, Power]) -> Row:
    info, found = item
    return Row(
        {
            "case": info.case.label,
            "fingerprint": info.case.fingerprint,
            "gpu_model": info.gpu_model,
            "environment": info.environment_key,
            "runs": found.runs,
            "changes": found.changes,
            "noise": found.noise,
            "gate_loss": found.gate_loss,
            "monitor_loss": found.monitor_loss,
            "false_alarms": found.false_alarms,
        }
    )


def _power(store: Store, info: SeriesInfo, rng: np.random.Generator) -> Power | None:
    """Return what one series could have shown, from its trusted runs; None without any."""
    runs = series(
        store, info.case.fingerprint, info.gpu_model, environment_key=info.environment_key
    )
    good = np.isin(runs.status, _GOOD) & ~runs.shared & np.isfinite(runs.median_s)
    if not good.any():
        return None
    times = runs.median_s[good]
    backend = runs.environments[0].backend
    return power([float(v) for v in times.min() / times], [float(v) for v in times], backend, rng)


def _runs_a_week(listed: Sequence[SeriesInfo]) -> float:
    """Return how many runs a series of the store has had a week, at least one."""
    spans = [(info.results, info.last_started - info.first_started) for info in listed]
    total = sum(results for results, _ in spans)
    weeks = sum(max(span, _WEEK_S) / _WEEK_S for _, span in spans)
    return total / weeks if weeks else 0.0
