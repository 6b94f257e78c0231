"""The page of a rehearsal, written from what it left.

    python -m tracker.demo.rehearsed OUT FOLDER [--part NAME]

OUT is the folder of `tracker.demo.rehearse`; FOLDER gets ci-<device>[-NAME].md and, where Chromium
is installed, pictures of the report and of the step summary.
"""

import argparse
import html
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracker.errors import RecordError, TrackerError
from tracker.model import Run
from tracker.record import load_run
from tracker.report.headings import environment_words

WIDTH = 1200
# Step of the facts, what it is, what it was expected to end with.
STEPS = (
    ("main", "main is measured for the first time", "0, no baseline yet"),
    ("measure", "the pull request is measured, suspicious cases in turns with main", "1"),
    ("judge", "another job judges the records with the code of main", "1"),
    ("bisect", "the commit is looked for", "0, the planted one"),
    ("backfill", "two missing commits and a newer one are measured into their place", "0"),
    ("history", "the series of the case", "0"),
    ("again", "main is measured once more, with nothing changed", "0 or 3, no regression"),
)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal left: its facts, the first run of main, the transcript."""

    facts: Mapping[str, Any]
    run: Run
    transcript: str

    @property
    def name(self) -> str:
        """The page's name, after the device."""
        model = re.sub(r"[^a-z0-9]+", "-", self.run.environment.gpu_model.lower()).strip("-")
        return f"ci-{model}"


def read(folder: Path) -> Rehearsal:
    """Return what is in the folder of a rehearsal. Raises RecordError for one that has nothing."""
    try:
        facts = json.loads((folder / "facts.json").read_text("utf-8"))
        transcript = (folder / "transcript.md").read_text("utf-8")
    except (OSError, ValueError) as error:
        raise RecordError(
            f"cannot read {folder}: {error}; expected the folder of a rehearsal"
        ) from None
    return Rehearsal(facts, load_run(folder / "main" / "head-0.json"), transcript)


def verdict(facts: Mapping[str, Any]) -> str:
    """Return one paragraph on whether the loop did what it is for, from the facts alone."""
    planted, found = str(facts["planted"]), facts.get("found") or {}
    gate = "failed the pull request" if _exit(facts, "judge") == 1 else "did not fail it"
    if found.get("culprit") == planted:
        search = (
            f"`bisect` named {planted[:10]}, the planted commit, with a probability of "
            f"{found['probability']:.1%} after {found['readings']} readings of {found['commits']} "
            "commits"
        )
    elif found.get("culprits"):
        likely = ", ".join(sha[:10] for sha in found["culprits"])
        search = (
            f"`bisect` was not certain: most likely {likely} at {found['probability']:.1%}, "
            f"while {planted[:10]} was planted"
        )
    elif _exit(facts, "bisect") is None:
        search = "no time was left to look for the commit"
    else:
        search = "`bisect` named no commit"
    again = {
        1: "Main, measured once more, raised a false alarm.",
        None: "Main was not measured once more.",
    }.get(_exit(facts, "again"), "Main, measured once more, raised no alarm.")
    return f"The gate {gate}; {search}. {again}"


def page(rehearsal: Rehearsal, pictures: Sequence[str]) -> str:
    """Return the page as Markdown."""
    facts, run = rehearsal.facts, rehearsal.run
    versions = ", ".join(f"{k} {v}" for k, v in sorted(run.environment.libraries.items()))
    rows = [
        f"| {what} | {wanted} | {facts[step]['exit']} | {facts[step]['seconds']:.0f} s |"
        for step, what, wanted in STEPS
        if step in facts
    ]
    shown = [f"![{name}]({name}.png)" for name in pictures]
    return "\n".join((
        f"# The loop around a pull request: {run.environment.gpu_model}",
        "",
        f"{run.started_at[:10]}, {environment_words(run.environment)}; {versions}. Made by",
        "",
        "    python -m tracker.demo.rehearse OUT",
        "    python -m tracker.demo.rehearsed OUT docs/results",
        "",
        "in a clone of this repository. Commits of its history were put on a branch again; among",
        "them stands one that makes relu/cuda_vector slower under an innocent name. Everything",
        "after that is what the commands printed.",
        "",
        verdict(facts),
        "",
        "| step | expected exit code | exit code | took |",
        "| --- | --- | ---: | ---: |",
        *rows,
        "",
        *(line for picture in shown for line in (picture, "")),
        "## Transcript",
        "",
        re.sub(r"^## ", "### ", rehearsal.transcript.strip(), flags=re.MULTILINE),
        "",
    ))  # fmt: skip


def _exit(facts: Mapping[str, Any], step: str) -> int | None:
    found = facts.get(step)
    return int(found["exit"]) if isinstance(found, dict) else None


def pictures(folder: Path, into: Path, name: str) -> tuple[str, ...]:
    """Write pictures of the report and of the step summary; none where there is no Chromium."""
    if shutil.which("chromium") is None:
        return ()
    report, summary = folder / "report" / "report.html", folder / "step-summary.md"
    with tempfile.TemporaryDirectory() as scratch:
        rendered = Path(scratch) / "summary.html"
        if summary.is_file():
            rendered.write_text(_rendered(summary.read_text("utf-8")), "utf-8")
        wanted = {report: into / f"{name}-report.png", rendered: into / f"{name}-summary.png"}
        found = {source: target for source, target in wanted.items() if source.is_file()}
        _shoot(found)
    return tuple(target.stem for target in found.values())


def _rendered(markdown: str) -> str:
    from markdown_it import MarkdownIt  # comes with rich

    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    style = (
        "body{font:14px system-ui,sans-serif;margin:24px;max-width:1200px}"
        "table{border-collapse:collapse}td,th{border:1px solid #d0d7de;padding:5px 12px}"
        "code{background:#f0f1f3;border-radius:5px;padding:2px 4px;font-size:85%}"
    )
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape('step summary')}</title>"
        f"<style>{style}</style>{body}"
    )


def _shoot(sources: Mapping[Path, Path]) -> None:
    """Write a picture of each page, whole from top to bottom: targets by page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page_ = browser.new_page(viewport={"width": WIDTH, "height": 200})
        for source, target in sources.items():
            page_.goto(source.resolve().as_uri())
            page_.screenshot(path=str(target), full_page=True)
        browser.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; the exit code is 2 for a folder that is none of a rehearsal."""
    parser = argparse.ArgumentParser(prog="python -m tracker.demo.rehearsed", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", help="end of the page's name, where there are several")
    given = parser.parse_args(arguments)
    try:
        rehearsal = read(given.out)
        name = f"{rehearsal.name}-{given.part}" if given.part else rehearsal.name
        shown = pictures(given.out, given.folder.resolve(), name)
        path = given.folder / f"{name}.md"
        path.write_text(page(rehearsal, shown), "utf-8")
    except (TrackerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(path, *shown, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
