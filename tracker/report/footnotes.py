"""Numbers for the reasons under a table, one per distinct text."""

from tracker.report.document import Row


class Footnotes:
    """Collects the footnotes of rows in the order in which they are first needed."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def marks(self, row: Row) -> str:
        """Return the numbers of a row's footnotes, such as `1,3`, or an empty text."""
        numbers = [self._numbers.setdefault(text, len(self._numbers) + 1) for text in row.footnotes]
        return ",".join(map(str, sorted(set(numbers))))

    def lines(self) -> tuple[tuple[int, str], ...]:
        """Return every footnote with its number, in order."""
        return tuple((number, text) for text, number in self._numbers.items())
