"""A study's write-up: Markdown, JSON and picture under docs/results/."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from perftests.studies.frame import reason_of
from perftests.studies.pictures import picture
from perftests.studies.tables import documents, slug, versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from perftests.studies.frame import Done

CPU_NOTE = (
    "No GPU took part: measured small on the CPU, which checks the study and says nothing of a GPU"
)
SMALL_NOTE = (
    "Measured small, as asked with `--small`: sizes are below those that the claim is about"
)
_SENTENCE_ENDS = re.compile(r"(?<=[.]) ")
_LONG = 4
"""Sentences after the first from which they become a list."""


@dataclass(frozen=True)
class Setting:
    """Where and how a study was run. `facts` are environment and device as the record has them.

    `floor_s` is what the timer says of an empty kernel, launched cold: a part of every cold time.
    """

    command: str
    facts: Mapping[str, Any]
    commit: str
    small: bool
    floor_s: float | None = None

    @property
    def model(self) -> str:
        """The GPU model, or the CPU's name."""
        return str(self.facts["environment"]["gpu_model"])

    @property
    def note(self) -> str | None:
        """Why the figures are not those of the claim's sizes, None when they are."""
        if self.facts["environment"]["backend"] == "cpu":
            return CPU_NOTE
        return SMALL_NOTE if self.small else None


def write(done: Done, setting: Setting, folder: Path) -> Path:
    """Write a study's files and return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{done.study.name}-{slug(setting.model)}"
    made = datetime.now(UTC).isoformat(timespec="seconds")
    shown = _drawn(done, folder / f"{stem}.png", _foot(setting, made))
    path = folder / f"{stem}.md"
    path.write_text(_markdown(done, setting, made, shown))
    document = {
        "study": done.study.name,
        "title": done.study.title,
        "made": made,
        "command": setting.command,
        "commit": setting.commit,
        "small": setting.small,
        "seconds": round(done.seconds, 1),
        "floor_s": setting.floor_s,
        **setting.facts,
        "claim": done.study.claim,
        "verdict": done.findings.verdict,
        "sections": documents(done.findings.sections),
    }
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def _markdown(done: Done, setting: Setting, made: str, shown: str) -> str:
    note = [f"**{setting.note}.**", ""] if setting.note else []
    return "\n".join(
        [
            f"# {done.study.title}: {setting.model}",
            "",
            *note,
            made_line(setting, made, done.seconds),
            "",
            f"**Claim.** {done.study.claim}",
            "",
            *paragraphs(done.findings.verdict),
            "",
            shown,
            "",
            *(section.text() for section in done.findings.sections),
        ]
    )


def made_line(setting: Setting, made: str, seconds: float) -> str:
    """Return when, by which command, of which commit, in how long and with what it was made."""
    line = (
        f"Made {made} by `{setting.command}` at commit {setting.commit}, in {seconds:.0f} s; "
        f"{versions(setting.facts['environment'])}."
    )
    if setting.floor_s is not None:
        line += (
            f" An empty kernel takes {setting.floor_s * 1e6:.1f} us under the timer of this "
            "process: no cold time below is shorter, and machines differ in it."
        )
    return line


def paragraphs(verdict: str) -> list[str]:
    """Return a verdict in lines of Markdown: of a long one what follows the start is a list."""
    first, *others = _SENTENCE_ENDS.split(verdict)
    if len(others) < _LONG:
        return [f"**Verdict.** {verdict}"]
    return [f"**Verdict.** {first}", "", *(f"- {sentence}" for sentence in others)]


def _foot(setting: Setting, made: str) -> str:
    """Return what stands below the picture: GPU, date, command and versions."""
    small = " (small)" if setting.small else ""
    start = f"{setting.model}{small}, {made}, {setting.command} at commit {setting.commit}"
    return f"{start}\n{versions(setting.facts['environment'])}"


def _drawn(done: Done, path: Path, foot: str) -> str:
    """Draw the picture and return the Markdown that shows it, or why there is none."""
    if done.findings.draw is None:
        return "No picture: nothing was measured that could be drawn."
    try:
        picture(done.findings.draw, path, told=foot)
    except Exception as error:  # noqa: BLE001 - the tables count without it
        path.unlink(missing_ok=True)
        return f"No picture: {reason_of(error)}."
    return f"![{done.study.title}]({path.name})"
