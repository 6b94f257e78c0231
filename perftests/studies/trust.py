"""How far the harness's times can be trusted, in figures measured on the GPU at hand.

    python -m perftests.studies.trust --out docs/results     # all parts, some four minutes
    python -m perftests.studies.trust agreement spread planted overhead

`agreement` sets it against nvbench on the same kernel in the same run; `spread` repeats one median
in fresh processes; `planted` finds known slow-downs; `overhead` says how much of the wall time is
not work of the GPU; `suites` how long all kernels take. Figures go to docs/results/ as text and
JSON, with command and commit, after each part.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.studies import nvbench_peer, recording
from perftests.studies.document import Setting, made_line
from perftests.studies.overhead import overhead
from perftests.studies.spread import RUNS, spread
from perftests.studies.suites import suites
from perftests.studies.tables import Row, Section, documents, slug
from perftests.studies.timed import measured, new_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AGREEMENT_GOALS = {1: 0.05, 16: 0.01, 64: 0.01, 256: 0.01, 1024: 0.01}
SIZES_MIB = tuple(AGREEMENT_GOALS)
PLANTED = (0.005, 0.01, 0.02, 0.05)
PLANTED_MIB = 256
WALL_GOAL = 0.2


def agreement() -> Section:
    """Compare medians and wall times with nvbench's at each size, both in one process."""
    with tempfile.TemporaryDirectory() as folder:
        answers = nvbench_peer.ask(SIZES_MIB, Path(folder))
    rows: list[Row] = []
    for mib, goal in AGREEMENT_GOALS.items():
        peer, own = answers[mib], answers[mib].own
        ours, theirs = own.median_s, peer.median_s
        rows.append(
            {
                "MiB": mib,
                "harness us": ours * 1e6,
                "nvbench us": theirs * 1e6,
                "nvbench mean us": peer.mean_s * 1e6,
                "nvbench's runs apart": peer.range_s / theirs,
                "difference": ours / theirs - 1,
                "goal": goal,
                "reached": abs(ours / theirs - 1) <= goal,
                "harness wall s": own.wall_s,
                "of it timing s": own.timing_s,
                "first answer s": own.first_s,
                "nvbench wall s": peer.wall_s,
                "wall share": own.wall_s / peer.wall_s,
                "a fifth": own.wall_s / peer.wall_s <= WALL_GOAL,
                "measurements": own.measurements,
                "stopped": own.stopped,
            }
        )
    how = (
        f"torch ReLU, fp32, cold, medians; ours first, then nvbench {nvbench_peer.RUNS} times, "
        "each on a stream of another context, the middle one told, in one process, through the "
        "same places in memory; walls are those of one answer, ours without the yardsticks (copies "
        "and empty launch, measured once for a size and session) and the first call; the first "
        "answer at a size has the yardsticks too, and that of the first size the first call"
    )
    return Section("Agreement with nvbench", how, rows)


def planted() -> Section:
    """Plant slow-downs by more data and count how often base and head come out in order."""
    session = new_session()
    rows: list[Row] = []
    measured(session, PLANTED_MIB)
    for share in PLANTED:
        effects = []
        for run in range(RUNS):
            order = (0.0, share) if run % 2 == 0 else (share, 0.0)
            found = {more: measured(session, PLANTED_MIB, more=more) for more in order}
            base, head = median(found[0.0].seconds), median(found[share].seconds)
            effects.append(head / base - 1)
        right = sum(effect > 0 for effect in effects)
        rows.append(
            {
                "planted": share,
                "found median": median(effects),
                "found least": min(effects),
                "found most": max(effects),
                "ordered right": f"{right} of {RUNS}",
                "reached": right == RUNS,
            }
        )
    how = (
        f"torch ReLU, {PLANTED_MIB} MiB, A/B in turn; planted is a share of more data, "
        "whose time need not grow by as much: what counts is that base and head come out in order"
    )
    return Section("Planted slow-downs", how, rows)


PARTS: dict[str, Callable[[], Section]] = {
    "agreement": agreement,
    "spread": spread,
    "planted": planted,
    "overhead": lambda: overhead(SIZES_MIB),
    "suites": suites,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts asked for and write the results; return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description="figures of the harness on this GPU")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    given = parser.parse_args(arguments)
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    sections: list[Section] = []
    setting, started = _setting(given.parts), time.perf_counter()
    for part in given.parts or PARTS:
        began = time.perf_counter()
        sections.append(_made(part))
        print(sections[-1].text())
        print(f"({part}: {time.perf_counter() - began:.1f} s)\n", flush=True)
        write(sections, given.out, setting, time.perf_counter() - started)
    return 0 if all(section.reached for section in sections) else 1


def _made(part: str) -> Section:
    """Return a part's section, one that says why where it could not be measured."""
    try:
        return PARTS[part]()
    except RuntimeError as error:
        return Section(part.capitalize(), "Not measured", [{"why": str(error), "reached": False}])


def _setting(parts: Sequence[str]) -> Setting:
    """Return where and how the study runs; asked before a write-up changes the tree."""
    command = shlex.join(["python", "-m", "perftests.studies.trust", *parts])
    header = recording.Header(_now(), command, recording.checkout())
    return Setting(command, facts(), header.commit, small=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write(sections: Sequence[Section], folder: Path, setting: Setting, seconds: float) -> Path:
    """Write what there is so far, one name for each GPU model, and return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, made = f"trust-{slug(setting.model)}", _now()
    title = f"# How far the times can be trusted: {setting.model}"
    told = (section.text() for section in sections)
    path = folder / f"{stem}.md"
    path.write_text("\n".join([title, "", made_line(setting, made, seconds), "", *told]))
    document = {
        "made": made,
        "command": setting.command,
        "commit": setting.commit,
        "seconds": round(seconds, 1),
        **setting.facts,
        "sections": documents(sections),
    }
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def facts() -> dict[str, Any]:
    """Return environment and device of the results."""
    import torch

    bench = new_session().bench(torch.device("cuda", 0))
    return {"environment": bench.environment, "device": bench.facts}


if __name__ == "__main__":
    sys.exit(main())
