"""GitHub Actions in small: plays a workflow file for an event, in folders of a test.

Jobs run in the order of their needs, each in a workspace of its own; scripts run in bash; composite
actions of this repository are expanded. Actions from elsewhere are stand-ins that do what the real
ones do: check out, keep and fetch artefacts, post a comment over HTTP.
"""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.tests.loop import fake
from tracker.tests.loop.expressions import evaluate, interpolate, shown, truthy
from tracker.tests.workflow_rules import load

Yaml = Mapping[str, Any]


@dataclass
class Event:
    """What GitHub tells a run: the event's name and payload, the commit and the ref that runs."""

    name: str
    sha: str
    ref: str
    payload: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """How a job ended, and what it had in hand."""

    result: str
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    environment: str = ""
    permissions: Yaml = field(default_factory=dict)


@dataclass
class GitHub:
    """A repository's runs. `origin` is the repository, `folder` where everything happens.

    `install` takes the place of steps whose name starts with "Install": it gets the workspace.
    `secrets` are by environment; a job outside an environment has none.
    """

    origin: Path
    folder: Path
    install: Callable[[Path], None]
    repository: str = "acme/kernels"
    api: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    path: Path | None = None
    runs: int = 0
    artifacts: list[str] = field(default_factory=list)

    def run(self, workflow: str, event: Event, *, attempt: int = 1) -> dict[str, Job]:
        """Play a workflow; return its jobs by name, skipped ones too."""
        self.runs += attempt == 1
        run = _Run(self, event, self.folder / f"run-{self.runs}-{attempt}", self.runs, attempt)
        file = load(self._workflow(event.sha, workflow))
        jobs: dict[str, Job] = {}
        for name, job in file["jobs"].items():
            needs = job.get("needs", [])
            needs = [needs] if isinstance(needs, str) else needs
            jobs[name] = run.job(name, job, {need: jobs[need] for need in needs})
        return jobs

    def group(self, workflow: str, event: Event) -> tuple[str, bool]:
        """Return the concurrency group of a run, and whether it cancels an earlier one."""
        self.runs += 1
        run = _Run(self, event, self.folder, self.runs, 1)
        found = load(self._workflow(event.sha, workflow))["concurrency"]
        contexts = run.contexts({}, {}, {})
        group = shown(interpolate(found["group"], contexts, _functions([])))
        return group, bool(found["cancel-in-progress"])

    def _workflow(self, sha: str, name: str) -> Path:
        text = fake.git(self.origin, "show", f"{sha}:.github/workflows/{name}")
        path = self.folder / "workflow.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "utf-8")
        return path


@dataclass
class _Run:
    github: GitHub
    event: Event
    folder: Path
    number: int
    attempt: int

    def contexts(
        self, needs: Mapping[str, Job], steps: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "github": {
                "event_name": self.event.name,
                "event": self.event.payload,
                "ref": self.event.ref,
                "sha": self.event.sha,
                "repository": self.github.repository,
                "run_id": str(self.number),
                "token": "token-of-this-run",
            },
            "needs": {
                name: {"result": job.result, "outputs": job.outputs} for name, job in needs.items()
            },
            "steps": {name: {"outputs": outputs} for name, outputs in steps.items()},
            "inputs": {**self.event.inputs, **inputs},
            "vars": self.github.variables,
            "secrets": {},
        }

    def job(self, name: str, job: Yaml, needs: Mapping[str, Job]) -> Job:
        results = [need.result for need in needs.values()]
        contexts = self.contexts(needs, {}, {})
        if not _wanted(job.get("if"), contexts, results):
            return Job("skipped")
        where = shown(interpolate(str(job.get("environment", "")), contexts, _functions(results)))
        contexts["secrets"] = self.github.secrets.get(where, {})
        workspace = self.folder / name
        workspace.mkdir(parents=True, exist_ok=True)
        playing = _Playing(self, workspace, contexts)
        playing.steps(job["steps"])
        outputs = {
            key: shown(interpolate(value, playing.contexts, _functions([])))
            for key, value in job.get("outputs", {}).items()
        }
        result = "failure" if playing.failed else "success"
        return Job(result, outputs, "".join(playing.log), where, job.get("permissions", {}))


@dataclass
class _Playing:
    """The steps of a job, or of a composite action inside one."""

    run: _Run
    workspace: Path
    contexts: dict[str, Any]
    action: Path | None = None
    failed: bool = False
    log: list[str] = field(default_factory=list)
    number: int = 0

    def steps(self, steps: list[Yaml]) -> None:
        for step in steps:
            self.number += 1
            status = ["failure"] if self.failed else []
            if not _wanted(step.get("if"), self.contexts, status):
                continue
            outputs, code = self._step(step)
            self.failed |= code != 0
            self.log.append(f"[{step.get('name')}] exit {code}\n")
            if "id" in step:
                self.contexts["steps"][step["id"]] = {"outputs": outputs}

    def _step(self, step: Yaml) -> tuple[dict[str, str], int]:
        given = {
            key: interpolate(value, self.contexts, _functions([]))
            if isinstance(value, str)
            else value
            for key, value in step.get("with", {}).items()
        }
        uses = step.get("uses", "")
        if str(step.get("name", "")).startswith("Install") and "run" in step:
            self.run.github.install(self.workspace)
            return {}, 0
        if uses.startswith("./"):
            return self._composite(self.workspace / uses, given)
        if uses:
            return self._stand_in(uses.partition("@")[0], given)
        return self._script(step)

    def _script(self, step: Yaml) -> tuple[dict[str, str], int]:
        output = self.workspace.parent / f"output-{self.workspace.name}-{os.urandom(4).hex()}"
        output.touch()
        environment = self._environment(output) | {
            key: shown(interpolate(str(value), self.contexts, _functions([])))
            for key, value in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self.log += [done.stdout, done.stderr]
        pairs = (line.partition("=") for line in output.read_text("utf-8").splitlines())
        return {key: value for key, _, value in pairs}, done.returncode

    def _environment(self, output: Path) -> dict[str, str]:
        event, github = self.run.event, self.run.github
        payload = self.run.folder / "event.json"
        payload.write_text(json.dumps(event.payload), "utf-8")
        pull = event.payload.get("pull_request", {})
        kept = {k: os.environ[k] for k in ("HOME", "LANG", "TMPDIR") if k in os.environ}
        search = [str(github.path)] if github.path else []
        return kept | {
            "PATH": os.pathsep.join([*search, os.environ["PATH"]]),
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.run.folder / f"summary-{self.workspace.name}.md"),
            "GITHUB_EVENT_NAME": event.name,
            "GITHUB_EVENT_PATH": str(payload),
            "GITHUB_SHA": event.sha,
            "GITHUB_REF": event.ref,
            "GITHUB_REF_NAME": event.ref.removeprefix("refs/heads/").removeprefix("refs/"),
            "GITHUB_HEAD_REF": pull.get("head", {}).get("ref", ""),
            "GITHUB_REPOSITORY": github.repository,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": str(self.run.number),
            "GITHUB_RUN_ATTEMPT": str(self.run.attempt),
            "GITHUB_ACTION_PATH": str(self.action or ""),
        }

    def _composite(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, str], int]:
        action = load(folder / "action.yml")
        inputs = {
            name: given.get(name, declared.get("default", ""))
            for name, declared in action.get("inputs", {}).items()
        }
        contexts = {**self.contexts, "steps": {}, "inputs": inputs, "secrets": {}}
        inside = _Playing(self.run, self.workspace, contexts, folder)
        inside.steps(action["runs"]["steps"])
        self.log += inside.log
        outputs = {
            name: shown(interpolate(declared["value"], inside.contexts, _functions([])))
            for name, declared in action.get("outputs", {}).items()
        }
        return outputs, int(inside.failed)

    def _stand_in(self, action: str, given: Mapping[str, Any]) -> tuple[dict[str, str], int]:
        kept = self.run.github.folder / "artifacts"
        try:
            if action == "actions/upload-artifact":
                return self._keep(kept, given), 0
            self._plain(action, kept, given)
        except OSError as error:
            self.log.append(f"{action}: {error}\n")
            return {}, 1
        return {}, 0

    def _keep(self, kept: Path, given: Mapping[str, Any]) -> dict[str, str]:
        source, target = self.workspace / given["path"], kept / given["name"]
        shutil.copytree(source, target)  # artefacts are immutable; nothing to keep is an error too
        ids = self.run.github.artifacts
        ids.append(target.name)
        return {"artifact-id": str(len(ids))}

    def _plain(self, action: str, kept: Path, given: Mapping[str, Any]) -> None:
        if action == "actions/checkout":
            self._check_out(shown(given.get("ref")) or self.run.event.sha, given)
        elif action == "actions/download-artifact":
            number = given.get("artifact-ids")
            name = self.run.github.artifacts[int(number) - 1] if number else given["name"]
            target = self.workspace / given.get("path", ".")
            shutil.copytree(kept / name, target, dirs_exist_ok=True)
        elif action == "marocchino/sticky-pull-request-comment":
            self._comment(given)
        elif action != "actions/setup-python":
            raise AssertionError(f"no stand-in for {action}")

    def _check_out(self, ref: str, given: Mapping[str, Any]) -> None:
        assert given["persist-credentials"] is False
        depth = [] if given.get("fetch-depth") == 0 else ["--depth=1"]
        fake.git(self.workspace, "init", "--quiet")
        remote = self.run.github.origin.as_uri()
        refs = ["+refs/heads/*:refs/remotes/origin/*"] if not depth else []
        fake.git(self.workspace, "fetch", "--quiet", *depth, remote, ref, *refs)
        fake.git(self.workspace, "checkout", "--quiet", "--detach", ref)

    def _comment(self, given: Mapping[str, Any]) -> None:
        """Update the comment that carries the header's mark, or make one."""
        number = self.run.event.payload["pull_request"]["number"]
        mark = f"<!-- Sticky Pull Request Comment{given['header']} -->"
        body = (self.workspace / given["path"]).read_text("utf-8") + mark
        base = f"{self.run.github.api}/repos/{self.run.github.repository}/issues"
        known = _call("GET", f"{base}/{number}/comments")
        mine = [comment["id"] for comment in known if mark in comment["body"]]
        if mine:
            _call("PATCH", f"{base}/comments/{mine[0]}", {"body": body})
        else:
            _call("POST", f"{base}/{number}/comments", {"body": body})


def _call(method: str, address: str, data: object = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(address, body, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _wanted(condition: object, contexts: Mapping[str, Any], results: list[str]) -> bool:
    """Return whether a job or step runs; without a status function only after success."""
    functions = _functions(results)
    asked = str(condition or "").replace("${{", "").replace("}}", "").strip()
    names = ("always(", "cancelled(", "failure(", "success(")
    if not any(name in asked for name in names) and not functions["success"]():
        return False
    return truthy(evaluate(asked, contexts, functions)) if asked else True


def _functions(results: list[str]) -> dict[str, Callable[..., Any]]:
    return {
        "always": lambda: True,
        "cancelled": lambda: False,
        "success": lambda: all(result == "success" for result in results),
        "failure": lambda: "failure" in results,
        "contains": lambda where, what: what in where if where is not None else False,
        "join": lambda values, by: by.join(map(str, values)),
    }
