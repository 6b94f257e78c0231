"""The workflows: linters, and everything that they name exists. Each checker must find its planted fault."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import click
import pytest

from tracker.cli.main import cli
from tracker.errors import ExitCode
from tracker.report.github import step_outputs
from tracker.report.verdicts import Heading, verdict_document
from tracker.tests.workflow_rules import Repository, check

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-actions": ".github/actions/*/action.yml",
    "vendor.dependabot": ".github/dependabot.yml",
}
COPIED = (".github", ".ci", "docs/self-hosted-runner.md", "Makefile")


def bandwatch_commands() -> dict[str, frozenset[str]]:
    context = click.Context(cli)
    found = {}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        options = [p.opts + p.secondary_opts for p in command.params] if command else []
        found[name] = frozenset(option for group in options for option in group)
    return found


def reported_outputs() -> frozenset[str]:
    lines = step_outputs(verdict_document(Heading("t"), [], ExitCode.OK, limit=None)).splitlines()
    return frozenset(line.partition("=")[0] for line in lines)


@pytest.fixture(scope="module")
def repository() -> Repository:
    return Repository(ROOT, bandwatch_commands(), reported_outputs())


@pytest.fixture
def copy(tmp_path: Path, repository: Repository) -> Repository:
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return replace(repository, root=tmp_path)


def edit(repository: Repository, name: str, old: str, new: str) -> None:
    path = repository.root / ".github" / name
    text = path.read_text("utf-8")
    assert old in text, f"the fault cannot be planted: {old!r} is not in {name}"
    path.write_text(text.replace(old, new), "utf-8")


def tool(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).parent / str(arguments[0]), *arguments[1:]]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def zizmor(root: Path) -> list[str]:
    done = tool(
        "zizmor",
        "--offline",
        "--persona=pedantic",
        "--format=json",
        "--no-exit-codes",
        ".github",
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    return sorted({finding["ident"] for finding in json.loads(done.stdout)})


def test_zizmor_reports_nothing() -> None:
    assert zizmor(ROOT) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"),
    [
        (
            "workflows/gpu-bench.yml",
            "  pull_request:\n",
            "  pull_request_target:\n",
            "dangerous-triggers",
        ),
        (
            "workflows/gpu-bench.yml",
            "run: .venv/bin/bandwatch notify",
            "run: .venv/bin/bandwatch notify ${{ github.head_ref }}",
            "template-injection",
        ),
        ("workflows/ci.yml", "@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "unpinned-uses"),
        (
            "workflows/gpu-bench.yml",
            "permissions: {}\n",
            "permissions: write-all\n",
            "excessive-permissions",
        ),
        (
            "dependabot.yml",
            "      default-days: 14\n",
            "      default-days: 1\n",
            "dependabot-cooldown",
        ),
    ],
)
def test_zizmor_finds_a_planted_fault(
    copy: Repository, name: str, old: str, new: str, finding: str
) -> None:
    edit(copy, name, old, new)
    assert finding in zizmor(copy.root)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_have_the_shape_that_github_asks_for(schema: str) -> None:
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    assert files
    done = tool("check-jsonschema", "--builtin-schema", schema, *files)
    assert done.returncode == 0, done.stdout


def test_schema_check_finds_a_misspelt_key(copy: Repository) -> None:
    edit(copy, "workflows/ci.yml", "timeout-minutes: 60", "timeout-minuts: 60")
    path = copy.root / ".github/workflows/ci.yml"
    assert (
        tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", path).returncode
        == 1
    )


def test_everything_that_a_workflow_names_exists(repository: Repository) -> None:
    assert check(repository) == []


BENCH = "workflows/gpu-bench.yml"
CI = "workflows/ci.yml"
ACTION = "actions/bandwatch/action.yml"
FAULTS = [
    (CI, "needs: [test, wheel, workflows]", "needs: [test, weel]", "needs the job weel"),
    (BENCH, "${{ steps.measure.outputs.artifact }}", "${{ steps.measured.outputs.artifact }}", "the step measured"),
    (BENCH, "outputs:\n      artifact: $", "outputs:\n      artefact: $", "refers to the output artifact of bench"),
    (BENCH, "${{ steps.judge.outputs.verdict }}", "${{ steps.judge.outputs.verdikt }}", "nothing writes"),
    (BENCH, "needs: judge\n", "needs: []\n", "refers to needs.judge, which it does not need"),
    (BENCH, "gpu, h200]", "gpu, h100]", "label h100 is not in actionlint.yaml"),
    (BENCH, "runs-on: ubuntu-24.04", "runs-on: ubuntu-latest", "names no image"),
    (BENCH, "          command: .venv", "          comand: .venv", "the input comand"),
    (BENCH, "./.github/actions/bandwatch", "./.github/actions/bandwach", "which does not exist"),
    (BENCH, "github.event.pull_request.head.repo.full_name == github.repository &&", "true &&", "a fork's"),
    (BENCH, "      queue: max\n", "", "would cancel the second"),
    (BENCH, "${{ vars.GPU_LOCK }}", "${{ vars.GPU_LOK }}", "does not explain"),
    (BENCH, "${{ inputs.arguments }}", "${{ inputs.args }}", "the input args"),
    (BENCH, "--quick --ab --no-record", "--fast --ab --no-record", "the option --fast"),
    (BENCH, "bandwatch notify", "bandwatch notifi", "bandwatch notifi, which is no command"),
    (BENCH, ".github/requirements-gpu.txt", ".github/requirements-cpu.txt", "which does not exist"),
    (BENCH, "permissions: {}\n", "permissions: read-all\n", "permissions on top"),
    (BENCH, "    timeout-minutes: 180\n", "", "no timeout-minutes"),
    (BENCH, "contents: read # checkout\n    outputs:\n      artifact", "contents: write # x\n    outputs:\n      artifact", "may write"),
    (BENCH, "artifact-ids: ${{ needs", "name: ${{ needs", "a name that any job may have taken"),
    (BENCH, "${{ always() && vars.GPU_CLOCKS", "${{ vars.GPU_CLOCKS", "does not always unlock"),
    (BENCH, "bandwatch-clocks unlock", "bandwatch-clocks show", "does not always unlock"),
    (BENCH, "outputs.artifact-id }}", "outputs.artefact-id }}", "nothing writes"),
    (BENCH, "          persist-credentials: false\n", "", "keeps the checkout's credentials"),
    (CI, "${{ matrix.python }}", "${{ matrix.pyton }}", "matrix.pyton, which is no axis"),
    (CI, "run: .ci/run", "run: .ci/runn", "names .ci/runn"),
    (CI, "          wheel: dist\n", "", "does not give ./.github/actions/check-wheel its input wheel"),
    (CI, "# v7.0.1\n        with:\n          persist-credentials: false\n          fetch", "# v7\n        with:\n          persist-credentials: false\n          fetch", "no commit with its version"),
    ("workflows/release.yml", "          name: dist\n          path: dist/\n", "          name: built\n          path: dist/\n", "fetches the artefact dist"),
    (ACTION, "value: ${{ steps.run.outputs.verdict }}", "value: ${{ steps.run.outputs.verdickt }}", "nothing writes"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "told"), FAULTS)
def test_a_planted_fault_is_found(
    copy: Repository, name: str, old: str, new: str, told: str
) -> None:
    edit(copy, name, old, new)
    assert [fault for fault in check(copy) if told in fault]


def test_the_owners_to_be_named_are_of_paths_that_exist() -> None:
    text = (ROOT / "docs/self-hosted-runner.md").read_text("utf-8")
    rules = re.findall(r"^ *(/\S+) +(@\S+)$", text, re.MULTILINE)
    assert {path for path, _ in rules} >= {"/.github/", "/.ci/", "/Makefile", "/pyproject.toml"}
    for path, owner in rules:
        assert (ROOT / path.lstrip("/")).exists(), path
        assert (ROOT / path.lstrip("/")).is_dir() is path.endswith("/")
        assert re.fullmatch(r"@[\w-]+/[\w-]+", owner)
    # The project cannot name the people of whoever runs it: such a file would protect nothing.
    places = ("CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS")
    assert not [place for place in places if (ROOT / place).exists()]


def test_actions_are_pinned_to_one_commit_everywhere(copy: Repository) -> None:
    edit(copy, ACTION, "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1", f"{'0' * 40} # v7.0.2")
    assert [fault for fault in check(copy) if "is pinned to" in fault]


def pins(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines()
    found = (
        line.split(" ")[0].partition("==") for line in lines if "==" in line and line[0] != "#"
    )
    return {name.lower(): version for name, _, version in found}


def test_what_the_runner_installs_has_the_pinned_versions_and_a_hash_each() -> None:
    path = ROOT / ".github/requirements-gpu.txt"
    ours, constraints = pins(path), pins(ROOT / ".github/constraints.txt")
    assert {n: v for n, v in ours.items() if constraints.get(n, v) != v} == {}
    assert path.read_text().count("--hash=sha256:") == len(ours)


@pytest.fixture(scope="module")
def wheel_checker() -> ModuleType:
    path = ROOT / ".github/actions/check-wheel/check_wheel.py"
    spec = importlib.util.spec_from_file_location("check_wheel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda names: names, None),
        (lambda names: [*names, "kernels/__init__.py"], "brings kernels"),
        (lambda names: [*names, "tracker/tests/factory.py"], "brings the test"),
        (lambda names: names[1:], "lacks"),
    ],
)
def test_a_wheel_with_kernels_tests_or_gaps_is_refused(
    wheel_checker: ModuleType, change: Callable[[list[str]], list[str]], told: str | None
) -> None:
    names = [*wheel_checker.WANTED, "bandwatch-0.1.0.dist-info/METADATA"]
    found = wheel_checker.complaints(change(names), "bandwatch-0.1.0-py3-none-any.whl", "v0.1.0")
    assert (told in found[0]) if told else found == []


def test_a_wheel_of_another_version_is_refused(wheel_checker: ModuleType) -> None:
    found = wheel_checker.complaints(
        [*wheel_checker.WANTED], "bandwatch-0.1.0-py3-none-any.whl", "v0.2.0"
    )
    assert found == ["the wheel is bandwatch-0.1.0-py3-none-any.whl, expected version v0.2.0"]
