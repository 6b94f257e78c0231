"""What the linters for workflows leave unchecked: that everything a workflow names exists.

`check` takes the parsed files of a repository and gives back one sentence per fault.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

Yaml = Mapping[str, Any]
HOSTED = re.compile(r"ubuntu-\d\d\.\d\d")
BUILT_IN_LABELS = frozenset({"self-hosted", "linux", "x64"})
FORBIDDEN_TRIGGERS = ("pull_request_target", "workflow_run", "issue_comment")
OWN_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_REFERENCE = re.compile(
    r"\b(needs|steps|inputs|matrix|vars|secrets)\.([\w*-]+)(?:\.(\w+))?(?:\.([\w-]+))?"
)
_PIN = re.compile(r"uses:\s*(?P<action>[\w.-]+/[\w./-]+)@(?P<ref>\S+)(?:\s+#\s*(?P<version>\S+))?")
_OUTPUT = re.compile(r"([\w-]+)=[^\n]*>>\s*\"?\$GITHUB_OUTPUT")


@dataclass(frozen=True)
class Repository:
    """A checkout whose workflows are checked.

    `commands` maps each bandwatch command to its options, `reported` are the step outputs that a
    report in GitHub's format writes, `documented` is the text that explains variables and secrets.
    """

    root: Path
    commands: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reported: frozenset[str] = frozenset()

    @cached_property
    def workflows(self) -> dict[str, Yaml]:
        return {p.name: load(p) for p in sorted((self.root / ".github/workflows").glob("*.yml"))}

    @cached_property
    def actions(self) -> dict[str, Yaml]:
        found = sorted((self.root / ".github/actions").glob("*/action.yml"))
        return {f"./{p.parent.relative_to(self.root)}": load(p) for p in found}

    @cached_property
    def labels(self) -> frozenset[str]:
        path = self.root / ".github/actionlint.yaml"
        return BUILT_IN_LABELS | frozenset(load(path)["self-hosted-runner"]["labels"])

    @cached_property
    def documented(self) -> str:
        return (self.root / "docs/self-hosted-runner.md").read_text("utf-8")

    @cached_property
    def targets(self) -> frozenset[str]:
        text = (self.root / "Makefile").read_text("utf-8")
        return frozenset(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def load(path: Path) -> Yaml:
    """Return a YAML 1.2 file, where `on` is a text and no boolean."""
    found: Yaml = YAML(typ="safe").load(path.read_text("utf-8"))
    return found


def check(repository: Repository) -> list[str]:
    """Return what is wrong with all workflows and actions."""
    found = list(_pins(repository))
    for name, workflow in repository.workflows.items():
        found += [f"{name}: {fault}" for fault in _workflow(workflow, repository)]
    for name, action in repository.actions.items():
        inputs = frozenset(action.get("inputs", {}))
        steps = action["runs"]["steps"]
        outputs = {key: value["value"] for key, value in action.get("outputs", {}).items()}
        context = Context(repository, inputs)
        found += [f"{name}: {fault}" for fault in _steps(steps, context, outputs)]
    return found


@dataclass(frozen=True)
class Context:
    """What the expressions of one job or action may refer to."""

    repository: Repository
    inputs: frozenset[str]
    needs: Mapping[str, Yaml] = field(default_factory=dict)
    matrix: frozenset[str] = frozenset()


def _workflow(workflow: Yaml, repository: Repository) -> Iterator[str]:
    triggers = workflow["on"] if isinstance(workflow["on"], Mapping) else {workflow["on"]: None}
    yield from (
        f"{name} runs with the base's rights" for name in FORBIDDEN_TRIGGERS if name in triggers
    )
    if workflow.get("permissions") != {}:
        yield "permissions on top are not {}"
    manual = triggers.get("workflow_dispatch") or {}
    for name, job in workflow["jobs"].items():
        for fault in _job(job, workflow["jobs"], repository, frozenset(manual.get("inputs", {}))):
            yield f"{name}: {fault}"
        condition = " ".join(str(job.get("if", "")).split())
        own_runner = "pull_request" in triggers and "self-hosted" in _labels(job)
        if own_runner and OWN_REPOSITORY not in condition:
            yield f"{name}: a fork's pull request would run on our own runner"
        if "pull_request" in triggers and _may_write(job) and _fetches_by_name(job):
            yield f"{name}: may write and fetches by a name that any job may have taken"


def _may_write(job: Yaml) -> bool:
    return "write" in dict(job.get("permissions", {})).values()


def _fetches_by_name(job: Yaml) -> bool:
    fetching = _using(job, "actions/download-artifact@")
    return any("artifact-ids" not in step.get("with", {}) for step in fetching)


def _labels(job: Yaml) -> list[str]:
    runs_on = job["runs-on"]
    return [runs_on] if isinstance(runs_on, str) else list(runs_on)


def _job(job: Yaml, jobs: Yaml, repository: Repository, inputs: frozenset[str]) -> Iterator[str]:
    needs = job.get("needs", [])
    needs = [needs] if isinstance(needs, str) else needs
    yield from (f"needs the job {need}, which does not exist" for need in needs if need not in jobs)
    yield from _limits(job)
    yield from _clocks(job["steps"])
    yield from _runner(job, repository)
    context = Context(
        repository,
        inputs,
        {need: jobs[need] for need in needs if need in jobs},
        frozenset(job.get("strategy", {}).get("matrix", {})),
    )
    yield from _steps(job["steps"], context, job.get("outputs", {}))
    rest = {key: value for key, value in job.items() if key not in {"steps", "outputs"}}
    yield from _references(rest, context, {})
    yield from _artifacts(job, jobs, needs)


def _clocks(steps: list[Yaml]) -> Iterator[str]:
    """Complain about clocks that stay locked where measuring fails or is cancelled."""
    scripts = [str(step.get("run", "")) for step in steps]
    locks = [n for n, script in enumerate(scripts) if "bandwatch-clocks lock" in script]
    unlocks = [
        n
        for n, script in enumerate(scripts)
        if "bandwatch-clocks unlock" in script and "always()" in str(steps[n].get("if", ""))
    ]
    if locks and (not unlocks or max(unlocks) < max(locks)):
        yield "locks the clocks and does not always unlock them afterwards"


def _limits(job: Yaml) -> Iterator[str]:
    if "timeout-minutes" not in job:
        yield "has no timeout-minutes"
    if "permissions" not in job:
        yield "has no permissions of its own"


def _runner(job: Yaml, repository: Repository) -> Iterator[str]:
    labels = _labels(job)
    if labels[0] != "self-hosted":
        yield from (
            f"runs on {label}, which names no image"
            for label in labels
            if not HOSTED.fullmatch(label)
        )
        return
    yield from (
        f"label {label} is not in actionlint.yaml"
        for label in labels
        if label not in repository.labels
    )
    if job.get("permissions", {}) not in ({}, {"contents": "read"}):
        yield "may write although it runs on our own runner"
    if "environment" not in job:
        yield "runs on our own runner outside an environment"
    if job.get("concurrency", {}).get("queue") != "max":
        yield "does not queue for the device: a third run would cancel the second"


def _steps(steps: list[Yaml], context: Context, outputs: Yaml) -> Iterator[str]:
    known: dict[str, frozenset[str]] = {}
    for step in steps:
        yield from _references(step, context, known)
        yield from _uses(step, context.repository)
        yield from _script(step, context.repository)
        if "id" in step:
            known[step["id"]] = _produced(step, context.repository)
    yield from _references(outputs, context, known)


def _produced(step: Yaml, repository: Repository) -> frozenset[str]:
    if step.get("uses", "").startswith("actions/upload-artifact@"):
        return frozenset({"artifact-id", "artifact-url", "artifact-digest"})
    if "uses" in step:
        return frozenset(repository.actions.get(step["uses"], {}).get("outputs", {}))
    written = frozenset(_OUTPUT.findall(step["run"]))
    return written | (repository.reported if "--format github" in step["run"] else frozenset())


def _references(
    part: object, context: Context, steps: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    for text in _expressions(part):
        for kind, name, attribute, output in _REFERENCE.findall(text):
            yield from _reference(kind, name, (attribute, output), context, steps)


def _reference(
    kind: str,
    name: str,
    rest: tuple[str, str],
    context: Context,
    steps: Mapping[str, frozenset[str]],
) -> Iterator[str]:
    attribute, output = rest
    if kind == "needs" and name != "*":
        if name not in context.needs:
            yield f"refers to needs.{name}, which it does not need"
        elif attribute == "outputs" and output not in context.needs[name].get("outputs", {}):
            yield f"refers to the output {output} of {name}, which it does not have"
    elif kind == "steps" and name not in steps:
        yield f"refers to the step {name}, which is no earlier step"
    elif kind == "steps" and attribute == "outputs" and output not in steps[name]:
        yield f"refers to the output {output} of step {name}, which nothing writes"
    elif kind == "inputs" and name not in context.inputs:
        yield f"refers to the input {name}, which is not declared"
    elif kind == "matrix" and name not in context.matrix:
        yield f"refers to matrix.{name}, which is no axis"
    elif kind in {"vars", "secrets"} and f"`{name}`" not in context.repository.documented:
        yield f"uses {kind}.{name}, which docs/self-hosted-runner.md does not explain"


def _expressions(part: object, key: str = "") -> Iterator[str]:
    if isinstance(part, Mapping):
        for name, value in part.items():
            yield from _expressions(value, str(name))
    elif isinstance(part, list):
        for value in part:
            yield from _expressions(value)
    elif isinstance(part, str):
        yield from [part] if key == "if" else _EXPRESSION.findall(part)


def _uses(step: Yaml, repository: Repository) -> Iterator[str]:
    uses, given = step.get("uses", ""), step.get("with", {})
    if uses.startswith("actions/checkout@") and given.get("persist-credentials") is not False:
        yield "keeps the checkout's credentials"
    if not uses.startswith("./"):
        return
    if uses not in repository.actions:
        yield f"uses {uses}, which does not exist"
        return
    inputs = repository.actions[uses].get("inputs", {})
    yield from (
        f"gives {uses} the input {name}, which it lacks" for name in given if name not in inputs
    )
    yield from (
        f"does not give {uses} its input {name}"
        for name, declared in inputs.items()
        if declared.get("required") and name not in given
    )
    yield from _options("ci", str(given.get("arguments", "")), repository)


def _script(step: Yaml, repository: Repository) -> Iterator[str]:
    script = step.get("run", "")
    if _EXPRESSION.search(script):
        yield "puts an expression into a script; text from outside goes through env"
    for command, rest in re.findall(r"(?:\bbandwatch|\"\$COMMAND\") ([a-z]+)([^\n]*)", script):
        if command not in repository.commands:
            yield f"calls bandwatch {command}, which is no command"
        else:
            yield from _options(command, rest, repository)
    for target in re.findall(r"\bmake ([a-z-]+)", script):
        if target not in repository.targets:
            yield f"calls make {target}, which is no target"
    for path in re.findall(r"(?<![\w/$])\.(?:ci|github)/[\w./-]+", script):
        if not (repository.root / path).exists():
            yield f"names {path}, which does not exist"


def _options(command: str, text: str, repository: Repository) -> Iterator[str]:
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        if option not in repository.commands.get(command, frozenset()):
            yield f"gives bandwatch {command} the option {option}, which it lacks"


def _artifacts(job: Yaml, jobs: Yaml, needs: list[str]) -> Iterator[str]:
    """Complain about a fetched artefact with a fixed name that no needed job, near or far, keeps."""
    kept: set[str] = set()
    pending, seen = list(needs), set[str]()
    while pending:
        need = pending.pop()
        if need in seen or need not in jobs:
            continue
        seen.add(need)
        more = jobs[need].get("needs", [])
        pending += [more] if isinstance(more, str) else more
        kept |= {step["with"]["name"] for step in _using(jobs[need], "actions/upload-artifact@")}
    for step in _using(job, "actions/download-artifact@"):
        given = step.get("with", {})
        name = given.get("name", given.get("artifact-ids", ""))
        if not name or ("${{" not in name and name not in kept):
            yield f"fetches the artefact {name or 'of any name'}, which no needed job keeps"


def _using(job: Yaml, start: str) -> list[Yaml]:
    return [step for step in job["steps"] if step.get("uses", "").startswith(start)]


def _pins(repository: Repository) -> Iterator[str]:
    """Complain about an action that is not pinned to a commit, or to two of them."""
    seen: dict[str, tuple[str, str]] = {}
    files = [*(repository.root / ".github").glob("workflows/*.yml")]
    for path in sorted([*files, *(repository.root / ".github").glob("actions/*/action.yml")]):
        lines = path.read_text("utf-8").splitlines()
        for match in filter(
            None, map(_PIN.search, (s for s in lines if not s.lstrip().startswith("#")))
        ):
            action, ref, version = match["action"], match["ref"], match["version"] or ""
            if not re.fullmatch(r"[0-9a-f]{40}", ref) or not re.fullmatch(
                r"v\d+\.\d+\.\d+", version
            ):
                yield f"{path.name}: {action}@{ref} is no commit with its version behind it"
            elif seen.setdefault(action, (ref, version)) != (ref, version):
                yield f"{path.name}: {action} is pinned to {version} here, to {seen[action][1]} elsewhere"
