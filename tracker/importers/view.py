"""A foreign JSON object read with its path, so that every refusal says where and what."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from tracker.errors import RecordError
from tracker.record.strict import shorten


@dataclass(frozen=True, slots=True)
class View:
    """An object inside a document: `name` is the file, `path` where in it the object stands."""

    data: Mapping[str, object]
    path: str
    name: str

    @classmethod
    def of(cls, value: object, name: str, path: str = "") -> "View":
        """Return a view of a value that has to be an object. Raises RecordError."""
        if not isinstance(value, dict):
            raise RecordError(
                f"cannot read {name}: {path or 'the document'} is {shorten(value)}; "
                "expected an object"
            )
        return cls(value, path, name)

    def where(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise RecordError for what stands, or is missing, under a key."""
        found = f"is {shorten(self.data[key])}" if key in self.data else "is missing"
        raise RecordError(
            f"cannot read {self.name}: {self.where(key)} {found}; expected {expected}"
        )

    def text(self, key: str) -> str:
        """Return a text that has to be there."""
        value = self.data.get(key)
        return value if isinstance(value, str) and value else self.refuse(key, "a text")

    def text_or(self, key: str, default: str) -> str:
        """Return a text, or the default where it is missing, null or empty."""
        return default if self.data.get(key) in {None, ""} else self.text(key)

    def number(self, key: str) -> float:
        """Return a number that has to be there; nvbench writes some as texts."""
        found = self.number_or_none(key)
        return self.refuse(key, "a number") if found is None else found

    def number_or_none(self, key: str) -> float | None:
        """Return a number, None where it is missing or null."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                self.refuse(key, "a number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "a number")
        return float(value)

    def whole_or_none(self, key: str) -> int | None:
        """Return a whole number of 0 or more, None where it is missing or null."""
        value = self.number_or_none(key)
        if value is None:
            return None
        return int(value) if value.is_integer() and value >= 0 else self.refuse(key, "a count")

    def view(self, key: str) -> "View":
        """Return the object under a key."""
        return View.of(self.data.get(key), self.name, self.where(key))

    def view_or_empty(self, key: str) -> "View":
        """Return the object under a key, an empty one where it is missing or null."""
        return (
            View({}, self.where(key), self.name) if self.data.get(key) is None else self.view(key)
        )

    def items(self, key: str) -> list[object]:
        """Return the list under a key."""
        value = self.data.get(key)
        return value if isinstance(value, list) else self.refuse(key, "a list")

    def views(self, key: str) -> Iterator["View"]:
        """Yield the objects of the list under a key."""
        for index, item in enumerate(self.items(key)):
            yield View.of(item, self.name, f"{self.where(key)}[{index}]")

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return the list of numbers under a key; empty where it is missing or null."""
        if self.data.get(key) is None:
            return ()
        values = self.items(key)
        if not all(type(value) in {int, float} for value in values):
            self.refuse(key, "a list of numbers")
        return tuple(map(float, values))  # type: ignore[arg-type]
