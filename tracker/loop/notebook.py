"""A file in which a long command notes each step that is done, so that it can go on later."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tracker.errors import RecordError
from tracker.record import parse_json, read_limited

_SCHEMA = 1


@dataclass(slots=True)
class Notebook:
    """Entries on disk, each there before the next step begins."""

    path: Path
    kind: str
    key: str
    entries: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, kind: str, key: str) -> Self:
        """Return the notebook of a file, an empty one where there is none.

        Raises RecordError for a file of another kind or question, or one that is damaged.
        """
        notebook = cls(path, kind, key)
        if path.is_file():
            notebook.entries = _entries(path, kind, key)
        return notebook

    @classmethod
    def read(cls, path: Path, kind: str) -> Self:
        """Return the notebook of a file, whatever it was about.

        Raises RecordError for a file of another kind or one that is damaged.
        """
        data = parse_json(read_limited(path), str(path))
        key = data.get("key") if isinstance(data, dict) else None
        return cls(path, kind, str(key), _entries(path, kind, str(key)))

    def add(self, **entry: Any) -> None:
        """Add an entry and write the file whole."""
        self.extend([entry])

    def extend(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries, all of them or none, and write the file whole."""
        self.entries += entries
        document = {
            "schema": _SCHEMA,
            "kind": self.kind,
            "key": self.key,
            "entries": [dict(item) for item in self.entries],
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f"{self.path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            json.dump(document, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def clear(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.path.unlink(missing_ok=True)


def _entries(path: Path, kind: str, key: str) -> list[Mapping[str, Any]]:
    data = parse_json(read_limited(path), str(path))
    expected = {"schema": _SCHEMA, "kind": kind, "key": key}
    found = {name: data.get(name) for name in expected} if isinstance(data, dict) else data
    entries = data.get("entries") if isinstance(data, dict) else None
    if (
        found != expected
        or not isinstance(entries, list)
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise RecordError(
            f"cannot go on with {path}: it is not the notebook of this {kind}; "
            "give another folder, or remove it to begin anew"
        )
    return list(entries)
