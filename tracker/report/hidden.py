"""What a list leaves out for its length or its filter: how much, and what shows it."""


def hidden(count: int, told: str, option: str) -> str | None:
    """Return the sentence on `count` entries, `told` with their number; None where there are none.

    `option` is what to give the same command, such as `--limit 42`.
    """
    if not count:
        return None
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    return f"{told} {verb} hidden; {option} shows {them}"
