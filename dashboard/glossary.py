"""The words on the pages, one meaning each; every page shows those that it uses."""

from tracker.yardsticks import LAUNCH_BOUND, LAUNCH_BOUND_MEANS

WORDS: dict[str, str] = {
    "kernel": "an operation, such as relu or add",
    "implementation": "one way to compute a kernel: torch, triton, cuda_vector and so on",
    "case": "kernel, implementation, dtype, shape, alignment and cache mode: what has a history",
    "measurement": "one timed reading",
    "run": "the results of one commit in one environment on one device",
    "series": "the results of one case in comparable environments, in commit order",
    "environment": "GPU model, driver, CUDA and library versions, clock policy, power limit, ECC",
    "baseline": "the result that a new one is judged against, and the rule that picked it",
    "bandwidth": "bytes that must be moved over the median time; 1 GB/s is 10^9 bytes a second",
    "fraction of copy": "bandwidth over that of a copy of the same size, measured in the same run",
    "fraction of sum": "bandwidth over that of a sum of two arrays of the same size, two reads and "
    "a write, in the same run; in tables only of what moves three arrays",
    "empty kernel": "what a kernel that does nothing takes by the same timer in the same run, a "
    "part of every time; told beside times below ten of it",
    LAUNCH_BOUND: f"{LAUNCH_BOUND_MEANS}; tables show no share of a peak or a copy for it",
    "interval": "where the true change lies, at the confidence that the verdict asks for",
    "p-value": "how often noise alone would show a change this large",
    "change point": "a commit from which the level of a series is another one",
    "verdict": "regression, improvement, no change or undecided, with its reasons",
    "not run": "a case that the baseline has and this run, although complete, does not",
    "arithmetic intensity": "FLOP done for each byte moved",
    "ridge point": "the intensity from which arithmetic limits instead of memory",
    "worst ratio": "the largest error over its bound; at most 1 passes",
}


def told(words: tuple[str, ...]) -> str:
    """Return definitions as a Markdown list; ValueError for a word that has none."""
    missing = [word for word in words if word not in WORDS]
    if missing:
        raise ValueError(f"cannot explain {', '.join(missing)}: not in the glossary")
    return "\n".join(f"- **{word}**: {WORDS[word]}" for word in words)
