"""What one `bandwatch ci` did, on disk: its record files and a notebook of its steps.

The folder travels as an artefact to the job that judges. There it is what an untrusted process
left: only names of its own form are opened, every record is read strictly, sizes are bounded.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tracker.errors import ConfigError, RecordError
from tracker.loop.notebook import Notebook
from tracker.model import Run
from tracker.record import load_run, write_run

KIND = "ci"
NOTEBOOK = "session.json"
Role = Literal["base", "head", "repeat", "turn-base", "turn-head"]
_NAME = re.compile(r"(base|head|repeat|turn-base|turn-head)-\d{1,4}\.json")
_MAX_RECORDS = 400
_MAX_NOTES = 50


@dataclass(slots=True)
class Session:
    """The folder of one session."""

    folder: Path
    notebook: Notebook

    @classmethod
    def begin(cls, folder: Path, key: str, **asked: Any) -> Self:
        """Return the session to work in: an interrupted one of the same key, else a new one.

        A new one notes what it was `asked` for.

        Raises ConfigError for a folder that holds something else.
        """
        path = folder / NOTEBOOK
        if folder.exists() and not path.is_file() and any(folder.iterdir()):
            raise ConfigError(
                f"cannot write into {folder}: it holds files that are not of a session; "
                "choose another folder with --out"
            )
        session = cls(folder, _known(path, key) or Notebook(path, KIND, key))
        if not session.notebook.entries:
            session._clear()
            session.note("started", **asked)
        return session

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return a session that somebody else left, empty where there is none.

        Raises RecordError for a notebook that is damaged.
        """
        path = folder / NOTEBOOK
        if not path.is_file():
            return cls(folder, Notebook(path, KIND, ""))
        return cls(folder, Notebook.read(path, KIND))

    def note(self, step: str, **facts: Any) -> None:
        """Note that a step is done."""
        self.notebook.add(step=step, **facts)

    def has(self, step: str) -> bool:
        """Return whether a step is done."""
        return any(entry.get("step") == step for entry in self.notebook.entries)

    def facts(self, step: str) -> list[dict[str, Any]]:
        """Return what was noted with a step, each time it was done."""
        return [dict(entry) for entry in self.notebook.entries if entry.get("step") == step]

    def texts(self, step: str) -> tuple[str, ...]:
        """Return the texts noted with a step: fifty at most, then how many more there are."""
        found = [str(entry["text"]) for entry in self.facts(step) if entry.get("text") is not None]
        more = len(found) - _MAX_NOTES
        rest = (f"{more} more like these; session.json has them",) if more > 0 else ()
        return (*found[:_MAX_NOTES], *rest)

    def words(self, step: str, key: str) -> tuple[str, ...]:
        """Return what stands in lists of texts that were noted with a step, in order."""
        lists = (entry.get(key) for entry in self.facts(step))
        return tuple(
            word for found in lists if isinstance(found, list) for word in found if _is_text(word)
        )

    def keep(self, role: Role, runs: Iterable[Run], **facts: Any) -> None:
        """Write runs as record files, then note them."""
        self.keep_all({role: runs}, **facts)

    def keep_all(self, kept: Mapping[Role, Iterable[Run]], **facts: Any) -> None:
        """Write runs in several roles, then note all of them in one step."""
        entries = []
        self.folder.mkdir(parents=True, exist_ok=True)
        for role, runs in kept.items():
            names, first = [], len(self._names(role))
            for number, run in enumerate(runs, start=first):
                names.append(f"{role}-{number}.json")
                write_run(run, self.folder / names[-1])
            entries.append({"step": f"kept {role}", "files": names, **facts})
        self.notebook.extend(entries)

    def runs(self, role: Role) -> tuple[Run, ...]:
        """Return the runs that were kept in a role, in order.

        Raises RecordError for a name that is none of ours, a missing or an invalid record.
        """
        return tuple(load_run(self.folder / name) for name in self._names(role))

    def shas(self, step: str) -> tuple[str, ...]:
        """Return the commit ids noted with a step."""
        found = self.facts(step)
        shas = found[-1].get("shas") if found else ()
        return tuple(str(sha) for sha in shas) if isinstance(shas, list) else ()

    def _names(self, role: Role) -> Sequence[str]:
        lists = [entry.get("files", []) for entry in self.facts(f"kept {role}")]
        if not all(isinstance(names, list) for names in lists):
            raise RecordError(f"cannot read {self.folder}: its notebook names no list of records")
        names = [name for found in lists for name in found]
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise RecordError(f"cannot read {self.folder}: {name!a} is no name of a record")
        if len(names) > _MAX_RECORDS:
            raise RecordError(f"cannot read {self.folder}: {len(names)} records are too many")
        return names

    def _clear(self) -> None:
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.is_file():
                    path.unlink()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _known(path: Path, key: str) -> Notebook | None:
    """Return the notebook of an unfinished session of this key; any other is of the past."""
    if not path.is_file():
        return None
    try:
        notebook = Notebook.open(path, KIND, key)
    except RecordError:
        return None
    if any(entry.get("step") == "finished" for entry in notebook.entries):
        return None
    # What kept the last call from going on is not true of this one.
    notebook.entries = [e for e in notebook.entries if e.get("step") not in {"stopped", "problem"}]
    return notebook
