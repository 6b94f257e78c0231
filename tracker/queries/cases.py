"""Cases and series there are: what filters offer and count, and one case by what people call it."""

import re
from collections import Counter
from collections.abc import Mapping

from sqlalchemy import select

from tracker.errors import NotFoundError
from tracker.model import Case
from tracker.queries.info import SeriesInfo
from tracker.store import Store
from tracker.store.reader import cases_by_id
from tracker.store.schema import CaseRow, GpuModelRow, SeriesRow

# The properties that filters narrow by, in their order.
FILTERS = ("gpu_model", "kernel", "implementation", "dtype", "alignment", "cache")
_COLUMNS = {
    "gpu_model": GpuModelRow.name,
    "kernel": CaseRow.kernel,
    "implementation": CaseRow.implementation,
    "dtype": CaseRow.dtype,
    "alignment": CaseRow.alignment,
    "cache": CaseRow.cache,
}


def series_list(store: Store, **chosen: str | None) -> tuple[SeriesInfo, ...]:
    """Return the series that have the chosen values (names as in FILTERS), by case label.

    Raises ValueError for a name that is no filter.
    """
    _refuse_unknown(chosen)
    query = (
        select(
            SeriesRow.case_id,
            SeriesRow.fingerprint.label("environment_key"),
            SeriesRow.results,
            SeriesRow.first_started,
            SeriesRow.last_started,
            CaseRow.fingerprint.label("case_key"),
            GpuModelRow.backend,
            GpuModelRow.name,
        )
        .join(CaseRow, CaseRow.id == SeriesRow.case_id)
        .join(GpuModelRow, GpuModelRow.id == SeriesRow.gpu_model_id)
        .where(*(_COLUMNS[name] == value for name, value in chosen.items() if value is not None))
        .order_by(CaseRow.label, GpuModelRow.name, SeriesRow.id)
    )
    with store.reading("list series") as connection:
        rows = connection.execute(query).all()
        cases = cases_by_id(connection, {row.case_id for row in rows})
    return tuple(
        SeriesInfo(
            case=cases[row.case_id],
            case_key=row.case_key,
            backend=row.backend,
            gpu_model=row.name,
            environment_key=row.environment_key,
            results=row.results,
            first_started=row.first_started,
            last_started=row.last_started,
        )
        for row in rows
    )


def filter_counts(store: Store, **chosen: str | None) -> dict[str, dict[str, int]]:
    """Return, for each filter, its values and how many cases on GPU models each stands for.

    Each filter's options are narrowed by what is chosen in the filters before it (FILTERS), not by
    its own choice: so every option that is shown exists.
    """
    _refuse_unknown(chosen)
    columns = [_COLUMNS[name].label(name) for name in FILTERS]
    query = (
        select(SeriesRow.case_id, SeriesRow.gpu_model_id, *columns)
        .join(CaseRow, CaseRow.id == SeriesRow.case_id)
        .join(GpuModelRow, GpuModelRow.id == SeriesRow.gpu_model_id)
        .distinct()
    )
    with store.reading("count filters") as connection:
        rows = connection.execute(query).mappings().all()
    counts: dict[str, dict[str, int]] = {}
    for name in FILTERS:
        counts[name] = dict(sorted(Counter(str(row[name]) for row in rows).items()))
        if (value := chosen.get(name)) is not None:
            rows = [row for row in rows if row[name] == value]
    return counts


def _refuse_unknown(chosen: Mapping[str, object]) -> None:
    unknown = sorted(chosen.keys() - set(FILTERS))
    if unknown:
        raise ValueError(f"no filter is called {', '.join(unknown)}; expected {', '.join(FILTERS)}")


# Of cases that fit, so many are named in an error.
_NAMED = 5
_BETWEEN_WORDS = re.compile(r"[\s/\[\]]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(filter(None, _BETWEEN_WORDS.split(text)))


def find_case(store: Store, text: str) -> tuple[str, Case]:
    """Return the fingerprint and the case that a person means.

    `text` is a fingerprint or its beginning (4 digits or more), a label, or words that all stand in
    one case's label; where they stand there whole in some, parts of words in others do not count:
    relu is not scale_relu. Raises NotFoundError for none, and names the cases where several fit.
    """
    with store.reading("find a case") as connection:
        rows = connection.execute(select(CaseRow.id, CaseRow.fingerprint, CaseRow.label)).all()
        words, whole = text.split(), _words(text)
        ranks = (
            [row for row in rows if text in {row.fingerprint, row.label}],
            [row for row in rows if len(text) >= 4 and row.fingerprint.startswith(text)],
            [row for row in rows if whole and whole <= _words(row.label)],
            [row for row in rows if words and all(word in row.label for word in words)],
        )
        found = next((rank for rank in ranks if rank), [])
        if len(found) == 1:
            return found[0].fingerprint, cases_by_id(connection, [found[0].id])[found[0].id]
    if not found:
        raise NotFoundError(
            f"cannot find case {text!a} in {store.name}: none of {len(rows)} cases is called that; "
            "`bandwatch list --cases` shows them"
        )
    labels = Counter(row.label for row in found)
    # A label does not tell one version of a benchmark from the next, nor 1 from "1".
    named = sorted(
        row.label if labels[row.label] == 1 else f"{row.label} ({row.fingerprint})" for row in found
    )
    more = "more words" if max(labels.values()) == 1 else "more words or a fingerprint"
    rest = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    raise NotFoundError(
        f"cannot find case {text!a}: {len(found)} cases fit: {'; '.join(named[:_NAMED])}{rest}; "
        f"give {more}"
    )
