"""What studies measured, as a run document that the tracker's own command puts into the store.

The tracker is another layer: nothing of it is imported here. A run document is plain JSON of record
schema 1, and `bandwatch record` checks it as it would anybody's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.last_words import telling_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
NOTE = "studies: a part of the suite"
_FIELDS = ("sha", "parents", "author", "author_time", "commit_time", "subject")
_FORMAT = "%H%x00%P%x00%an <%ae>%x00%aI%x00%cI%x00%s"
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Header:
    """What holds for all results of one call: when, of what, by which command."""

    started_at: str
    command: str
    checkout: Mapping[str, Any]

    @property
    def commit(self) -> str:
        """The commit measured, for people."""
        commit = self.checkout["commit"]
        if commit is None:
            return "unknown (no git checkout)"
        return str(commit["sha"])[:12] + (" with changes" if self.checkout["dirty"] else "")


def checkout(root: Path = ROOT) -> dict[str, Any]:
    """Return what is checked out, as a record says it. A tree of unknown state counts as dirty."""
    told = _git(root, "show", "--no-patch", "--no-show-signature", f"--format={_FORMAT}", "HEAD")
    if told is None:
        return {"commit": None, "notes": ["no git facts"]}
    commit: dict[str, Any] = dict(zip(_FIELDS, told.split("\x00"), strict=True))
    commit["parents"] = commit["parents"].split()
    commit["subject"] = commit["subject"][:1000]
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    dirty = changed is None or bool(changed)
    tree = None if dirty else _git(root, "rev-parse", "HEAD^{tree}")
    branch = _git(root, "symbolic-ref", "--short", "--quiet", "HEAD")
    shallow = _git(root, "rev-parse", "--is-shallow-repository") == "true"
    return {"commit": commit, "branch": branch, "dirty": dirty, "tree": tree, "shallow": shallow}


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git says, None where it is not there or refuses."""
    command = ["git", "-C", str(root), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def documents(
    envelopes: Sequence[Mapping[str, Any]], header: Header, finished_at: str, studies: Sequence[str]
) -> list[dict[str, Any]]:
    """Return one run document for each environment and device; of a case twice the first counts.

    Two studies may need the same time; each measures it for itself.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for envelope in envelopes:
        key = json.dumps([envelope["environment"], envelope["device"]], sort_keys=True)
        groups.setdefault(key, []).append(envelope)
    run_id = uuid.uuid4().hex
    return [
        {
            "schema": 1,
            "kind": "run",
            "run_id": run_id if number == 1 else f"{run_id}.{number}",
            "started_at": header.started_at,
            "finished_at": finished_at,
            "environment": dict(members[0]["environment"]),
            "device": dict(members[0]["device"]),
            "checkout": dict(header.checkout),
            "complete": False,
            "command": header.command[:2000],
            "notes": [f"{NOTE} ({', '.join(studies)})"[:2000]],
            "results": _each_once(members),
        }
        for number, members in enumerate(groups.values(), start=1)
    ]


def _each_once(envelopes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for envelope in envelopes:
        result = envelope["result"]
        found.setdefault(json.dumps(result["case"], sort_keys=True), result)
    return list(found.values())


def record(runs: Sequence[Mapping[str, Any]], store: str | None, root: Path = ROOT) -> str:
    """Put runs into the store by the tracker's command and return what it says.

    Raises RuntimeError naming the file that keeps them when the tracker takes them not.
    """
    folder = Path(tempfile.mkdtemp(prefix="bandwatch-studies-"))
    paths = [folder / f"run-{number}.json" for number in range(1, len(runs) + 1)]
    for path, run in zip(paths, runs, strict=True):
        path.write_text(json.dumps(run, allow_nan=False) + "\n", "utf-8")
    command = [sys.executable, "-m", "tracker.cli.main", "record", *map(str, paths)]
    command += ["--format", "json", *(["--store", store] if store else [])]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(
            f"the results are not in the store: {telling_line(done.stderr or done.stdout)}; "
            f"they are kept; record them with: bandwatch record {' '.join(map(str, paths))}"
        )
    for path in paths:
        path.unlink()
    folder.rmdir()
    return str(json.loads(done.stdout)["summary"])
