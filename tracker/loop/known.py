"""What the store knows of a case: which test measures it."""

from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.queries import find_case, results, runs
from tracker.store import Store

_NEWEST_RUNS = 200


def test_of(text: str, config: Config) -> str:
    """Return the pytest id of a test: `text` itself when it is one, else that of a stored case.

    Raises NotFoundError for a case that is unknown or was stored without its test.
    """
    if "::" in text:
        return text
    with Store.open(config.store.url, read_only=True) as store:
        key, case = find_case(store, text)
        for run in runs(store, limit=_NEWEST_RUNS):
            for result in results(store, run, cases=[key], measurements=False):
                if result.test:
                    return result.test
    raise NotFoundError(
        f"cannot find the test of {case.label}: no recent result names it; give its pytest id"
    )


# pytest would take it for a test where it is imported by name.
test_of.__test__ = False  # type: ignore[attr-defined]
