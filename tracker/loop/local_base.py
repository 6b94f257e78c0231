"""The base of a local change, measured when the user asks for it: `pytest --benchmark-base`.

It is measured before the session's own tests, in a process of its own: a process that has used the
device would count as company afterwards, and its results could be no baseline.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tracker import git
from tracker.config import Config
from tracker.doctor.devices import survey_gpus
from tracker.errors import NotFoundError, StoreError, TrackerError
from tracker.loop.fresh import PytestMeasure, Task
from tracker.loop.runs import to_runs
from tracker.loop.settings import read_loop_settings
from tracker.loop.workplace import workplace
from tracker.merge_base import Selection, below, known_of, noted
from tracker.model import Checkout, Run
from tracker.queries import gpu_models
from tracker.store import Store
from tracker.units import counted


def provide_base(
    config: Config, checkout: Checkout, selection: Selection, tell: Callable[[str], None]
) -> str:
    """See to it that the store has results of the base; return in one line what was done."""
    base = below(checkout, config.root)
    if base is None:
        return "--benchmark-base: there is no commit to compare with"
    try:
        machine = _machine(selection)
        note = selection.note(machine)
        if where := _known(config, base, machine, note):
            return f"--benchmark-base: {where} has results of {base[:12]}, nothing was measured"
        runs = _measure(config, base, selection, tell)
        with Store.open(config.store.url) as store:
            for run in runs:
                store.record(noted(run, note))
    except TrackerError as error:
        return f"--benchmark-base: {base[:12]} was not measured: {error}"
    count = sum(len(run.results) for run in runs)
    cases = counted(count, "case")
    return f"--benchmark-base: measured {cases} of {base[:12]} just now"


def _machine(selection: Selection) -> tuple[str, ...]:
    """Return the driver and the GPUs that may be measured here; nothing where it is the CPU."""
    survey = survey_gpus()
    if selection.cpu or not survey.gpus:
        return ()
    return (f"driver {survey.driver}", *(gpu.name for gpu in survey.gpus))


def _known(config: Config, base: str, machine: Sequence[str], note: str) -> str | None:
    """Return which store has results of the base on this machine's devices."""
    for choice in filter(None, (config.store, config.team)):
        try:
            with Store.open(choice.url, read_only=True) as store:
                cpus = [model.name for model in gpu_models(store) if model.backend == "cpu"]
                if known_of(store, base, machine or cpus, note):
                    return choice.shown
        except StoreError:
            continue  # one that is not there yet, or out of reach: what is judged later tells
    return None


def _measure(
    config: Config, base: str, selection: Selection, tell: Callable[[str], None]
) -> Sequence[Run]:
    settings = read_loop_settings(config.root, config.suite)
    with workplace(config, f"journals/base-{base[:16]}", tell) as bench:
        bench.clear()
        tell(f"measuring {base[:12]} first, in a process of its own")
        folder = bench.trees.at(base)
        paths = tuple(path for path in selection.paths if _is_there(folder, path))
        if selection.paths and not paths:
            raise NotFoundError(f"it has none of {', '.join(selection.paths)[:200]}")
        there = replace(
            settings,
            suite=paths or settings.suite,
            arguments=(*settings.arguments, *selection.words),
        )
        started = bench.stamp.now()
        journal = bench.folder / "base.jsonl"
        measured = PytestMeasure(there)(folder, Task(keyword=selection.keyword), journal)
        found = to_runs(measured, git.checkout(folder, {}), bench.stamp, started)
        bench.clear()
    if failures := measured.told_failures:
        tell(f"{base[:12]}: {failures}")
    if not found:
        why = next(filter(None, (*measured.problems, failures, "no test measures")))
        raise NotFoundError(f"nothing was measured: {why}")
    return found


def _is_there(folder: Path, path: str) -> bool:
    return (folder / path.partition("::")[0]).exists()
