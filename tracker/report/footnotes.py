"""Numbers for the reasons under a table; what many rows share stands there once."""

from collections import Counter
from collections.abc import Sequence

from tracker.report.document import Footnote, Row
from tracker.units import counted


class Footnotes:
    """Collects the footnotes of rows in the order in which they are first needed.

    Footnotes with one key but different texts, such as a warning with each row's own number, stand
    as the first of them and a count of the others. Where they say what their rows are, the
    weightiest stands, with how many of all `rows` of the table share it, hidden ones too.
    """

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._notes: dict[str, dict[Footnote, None]] = {}
        self._rows = Counter(key for row in rows for key in {note.key for note in row.footnotes})
        for row in rows:
            for note in row.footnotes:
                if note.of:
                    self._notes.setdefault(note.key, {})[note] = None

    def marks(self, row: Row) -> str:
        """Return the numbers of a row's footnotes, such as `1,3`, or an empty text."""
        numbers = []
        for note in row.footnotes:
            numbers.append(self._numbers.setdefault(note.key, len(self._numbers) + 1))
            self._notes.setdefault(note.key, {})[note] = None
        return ",".join(map(str, sorted(set(numbers))))

    def lines(self) -> tuple[tuple[int, str], ...]:
        """Return every footnote with its number, in order."""
        return tuple((number, self._told(key)) for key, number in self._numbers.items())

    def unmarked(self) -> tuple[str, ...]:
        """Return what rows that have no number share, where it says what its rows are."""
        return tuple(self._told(key) for key in self._notes if key not in self._numbers)

    def _told(self, key: str) -> str:
        notes, rows = list(self._notes[key]), self._rows[key]
        texts = dict.fromkeys(note.text for note in notes)
        if notes[0].of and rows > 1:
            most = max(notes, key=lambda note: note.weight).text
            many = counted(rows, notes[0].of)
            return f"{most}; {many}" if len(texts) == 1 else f"{most}; of {many} the most"
        first, *others = texts
        return f"{first} (and {len(others)} more like it)" if others else first
