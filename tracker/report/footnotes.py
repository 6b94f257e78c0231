"""Numbers for the reasons under a table; what many rows share stands there once."""

from tracker.report.document import Row


class Footnotes:
    """Collects the footnotes of rows in the order in which they are first needed.

    Footnotes with one key but different texts, such as a warning with each row's own number, stand
    as the first of them and a count of the others.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, dict[str, None]] = {}

    def marks(self, row: Row) -> str:
        """Return the numbers of a row's footnotes, such as `1,3`, or an empty text."""
        numbers = []
        for note in row.footnotes:
            numbers.append(self._numbers.setdefault(note.key, len(self._numbers) + 1))
            self._texts.setdefault(note.key, {})[note.text] = None
        return ",".join(map(str, sorted(set(numbers))))

    def lines(self) -> tuple[tuple[int, str], ...]:
        """Return every footnote with its number, in order."""
        return tuple((number, self._told(key)) for key, number in self._numbers.items())

    def _told(self, key: str) -> str:
        first, *others = self._texts[key]
        return f"{first} (and {len(others)} more like it)" if others else first
