"""What `bandwatch init` writes: valid, safe, and never over somebody's own file."""

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tracker.loop.init import EXAMPLE, WORKFLOW, Outcome, Wishes, init, workflow
from tracker.loop.source import Source
from tracker.tests.loop import fake
from tracker.tests.loop.conftest import Command
from tracker.tests.test_workflows import ROOT, bandwatch_commands, reported_outputs, tool, zizmor
from tracker.tests.workflow_rules import Repository, check

SOURCE = Source("https://git.example.org/acme/bandwatch", "0123456789" * 4)
PINNED = f"git+{SOURCE.url}@{SOURCE.commit}"
WISHES = Wishes(source=SOURCE)


@pytest.fixture(autouse=True)
def came_from_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.cli.init.known_source", lambda: SOURCE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "theirs"
    root.mkdir()
    fake.git(root, "init", "--quiet", "--initial-branch=trunk")
    fake.commit(root, "First", {"README": "theirs"})
    monkeypatch.chdir(root)
    return root


@pytest.mark.usefixtures("project")
def test_what_is_missing_for_measuring_is_told_with_the_command(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "first, for" not in bandwatch("init").out
    lacks = {"torch", "pytest-benchmark"}
    monkeypatch.setattr("tracker.cli.init.installed", lambda name: None if name in lacks else "1")
    told = " ".join(bandwatch("init").out.split())
    assert "first, for pytest-benchmark, torch:" in told
    assert "-m pip install 'pytest-benchmark>=5.1' 'torch>=2.6'" in told
    assert "first, for" not in bandwatch("init", "--hook-only").out


def no(name: str) -> bool:
    del name
    return False


def test_everything_is_written_into_an_empty_repository(project: Path, bandwatch: Command) -> None:
    answer = bandwatch("init")
    assert answer.code == 0
    assert "4 of 4 files" in answer.out
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["tool"]["bandwatch"]["suite"] == ["benchmarks"]
    assert (project / EXAMPLE).is_file()
    assert "refs/heads/trunk" in (project / WORKFLOW).read_text()
    assert "@" not in (project / WORKFLOW).read_text().replace("uses: ", "").split("jobs:")[0]


@pytest.mark.parametrize("file", ["axpy.py", "axpy/__init__.py"])
def test_setuptools_finds_a_flat_project_s_own_code_alone_beside_the_benchmarks(
    file: str, project: Path, bandwatch: Command
) -> None:
    """It refuses to build a project with two packages, and takes a lone one for the project's."""
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("")
    bandwatch("init")
    assert (project / EXAMPLE).is_file()
    discovery = import_module("setuptools.discovery")
    finders = (discovery.FlatLayoutPackageFinder, discovery.FlatLayoutModuleFinder)
    assert [name for finder in finders for name in finder.find(str(project))] == ["axpy"]


def test_a_second_call_changes_nothing(project: Path, bandwatch: Command) -> None:
    bandwatch("init")
    before = {
        p: p.read_bytes() for p in project.rglob("*") if p.is_file() and ".git/" not in str(p)
    }
    assert "0 of 4 files" in bandwatch("init").out
    assert {p: p.read_bytes() for p in before} == before


def test_files_of_theirs_are_kept_and_settings_are_added_to(project: Path) -> None:
    (project / EXAMPLE).parent.mkdir()
    (project / EXAMPLE).write_text("# precious\n")
    (project / "pyproject.toml").write_text('[project]\nname = "theirs"\nversion = "1"\n')
    (project / ".gitignore").write_text("build/")
    done = {item.path: item.outcome for item in init(project, WISHES, no)}
    assert done[EXAMPLE] is Outcome.KEPT
    assert (project / EXAMPLE).read_text() == "# precious\n"
    assert done["pyproject.toml"] is Outcome.EXTENDED
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "theirs"
    assert (project / ".gitignore").read_text() == "build/\n.bandwatch/\n"


def test_files_of_theirs_keep_every_byte_and_their_line_ends(project: Path) -> None:
    before = b'[project]\r\nname = "theirs"\r\n# no line end'
    (project / "pyproject.toml").write_bytes(before)
    (project / ".gitignore").write_bytes(b"build/\r\n\r\n")
    init(project, WISHES, no)
    after = (project / "pyproject.toml").read_bytes()
    assert after.startswith(before + b"\r\n\r\n[tool.bandwatch]\r\n")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert (project / ".gitignore").read_bytes() == b"build/\r\n\r\n.bandwatch/\r\n"


def test_a_link_of_theirs_is_not_written_through(project: Path) -> None:
    (project / EXAMPLE).parent.mkdir()
    (project / EXAMPLE).symlink_to(project.parent / "elsewhere.py")
    done = {item.path: item.outcome for item in init(project, WISHES, no)}
    assert done[EXAMPLE] is Outcome.KEPT
    assert not (project.parent / "elsewhere.py").exists()


def test_a_folder_below_the_root_is_refused_since_no_workflow_runs_there(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "gpu").mkdir()
    monkeypatch.chdir(project / "gpu")
    answer = bandwatch("init")
    assert answer.code == 2
    assert f"{project}; call bandwatch init there" in answer.err
    assert list((project / "gpu").iterdir()) == []


def test_outside_a_repository_it_says_so_and_a_hook_writes_nothing(
    tmp_path: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = bandwatch("init", "--hook")
    assert answer.code == 2
    assert "no git repository; call git init first" in answer.err
    assert list(tmp_path.iterdir()) == []
    answer = bandwatch("init")
    assert answer.code == 0
    assert "no git repository: call git init" in answer.out


def test_a_repository_without_a_commit_gets_everything(
    tmp_path: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    monkeypatch.chdir(tmp_path)
    assert "5 of 5 files" in bandwatch("init", "--hook").out
    assert os.access(tmp_path / ".git/hooks/pre-push", os.X_OK)
    assert "refs/heads/trunk'" in (tmp_path / WORKFLOW).read_text()


@pytest.mark.parametrize(
    "text", [b"tool = 3\n", b"[[tool]]\n", b"\xff\n", b"tool = { x = 1 }\n", b"[tool\n"]
)
def test_settings_that_cannot_be_extended_are_one_line_and_nothing_is_written(
    project: Path, bandwatch: Command, text: bytes
) -> None:
    (project / "pyproject.toml").write_bytes(text)
    answer = bandwatch("init")
    assert answer.code == 2
    assert str(project / "pyproject.toml") in answer.err
    assert (project / "pyproject.toml").read_bytes() == text
    assert not (project / WORKFLOW).exists()


def test_a_file_is_replaced_when_they_say_so(project: Path) -> None:
    (project / EXAMPLE).parent.mkdir()
    (project / EXAMPLE).write_text("# old\n")
    asked: list[str] = []

    def yes(name: str) -> bool:
        asked.append(name)
        return True

    init(project, WISHES, yes)
    assert asked == [EXAMPLE]
    assert "gpu_benchmark" in (project / EXAMPLE).read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--labels", "gpu]\n  evil: x"),
        ("--branch", "a'b"),
        ("--labels", "${{ x }}"),
        ("--labels", ""),
    ],
)
def test_values_that_could_break_out_of_the_workflow_are_refused(
    project: Path, bandwatch: Command, arguments: tuple[str, str]
) -> None:
    assert bandwatch("init", *arguments).code == 2
    assert not (project / WORKFLOW).exists()


def test_names_that_yaml_takes_for_something_else_stay_names() -> None:
    found = YAML(typ="safe").load(workflow(Wishes("gpu, 1.0, on ,true", branch="2.10"), SOURCE))
    assert found["on"]["push"]["branches"] == ["2.10", "pull-request/[0-9]+"]
    assert found["jobs"]["bench"]["runs-on"] == ["gpu", "1.0", "on", "true"]


def test_the_history_kept_is_that_of_the_main_branch(project: Path, bandwatch: Command) -> None:
    fake.git(project, "switch", "--quiet", "--create", "add-benchmarks")
    bandwatch("init")
    assert "refs/heads/add-benchmarks'" in (project / WORKFLOW).read_text()  # no main is known
    fake.git(project, "branch", "master")
    bandwatch("init", "--force")
    assert "refs/heads/master'" in (project / WORKFLOW).read_text()
    fake.git(project, "update-ref", "refs/remotes/origin/trunk", "HEAD")
    fake.git(project, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    bandwatch("init", "--force")
    assert "refs/heads/trunk'" in (project / WORKFLOW).read_text()


def written(project: Path) -> Repository:
    """Return what a repository looks like to the workflow checks after `init`."""
    init(project, WISHES, no)
    (project / ".github/actionlint.yaml").write_text("self-hosted-runner:\n  labels: [gpu]\n")
    (project / "docs").mkdir()
    (project / "docs/self-hosted-runner.md").write_text("`BANDWATCH_STORE`")
    (project / "Makefile").write_text("")
    return Repository(project, bandwatch_commands(), reported_outputs())


def test_the_workflow_has_no_finding(project: Path) -> None:
    assert check(written(project)) == []
    assert zizmor(project) == []
    schema = tool(
        "check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW, cwd=project
    )
    assert schema.returncode == 0, schema.stdout


def test_a_fault_in_the_workflow_would_be_found(project: Path) -> None:
    found = written(project)
    path = project / WORKFLOW
    path.write_text(
        path.read_text().replace("steps.keep.outputs.artifact-id", "steps.kept.outputs.artifact-id")
    )
    assert check(replace(found)) != []


def test_the_workflow_pins_what_ours_pins(project: Path) -> None:
    ours = "".join(p.read_text() for p in (ROOT / ".github/workflows").glob("*.yml"))
    theirs = workflow(WISHES, SOURCE)
    pins = [line.partition("uses: ")[2] for line in theirs.splitlines() if "uses: " in line]
    assert pins
    assert [pin for pin in pins if pin not in ours] == []


def installed(text: str) -> list[str]:
    """Return what the workflow gives to pip, for measuring and for judging."""
    return re.findall(r"pip install --quiet (.*)", text)


@pytest.mark.parametrize(
    ("files", "own"),
    [
        ({}, ""),
        ({"pyproject.toml": "[tool.black]\n"}, ""),
        ({"pyproject.toml": '[project]\nname = "theirs"\nversion = "1"\n'}, " ."),
        ({"pyproject.toml": '[build-system]\nrequires = ["flit"]\n'}, " ."),
        ({"setup.py": ""}, " ."),
        ({"requirements.txt": "einops\n"}, " --requirement requirements.txt"),
    ],
)
def test_the_workflow_installs_one_commit_the_driver_of_its_store_and_the_project_itself(
    project: Path, files: dict[str, str], own: str
) -> None:
    for name, text in files.items():
        (project / name).write_text(text)
    init(project, WISHES, no)
    assert installed((project / WORKFLOW).read_text()) == [
        f'"bandwatch[gpu,postgres] @ {PINNED}"{own}',
        f'"bandwatch @ {PINNED}"',
    ]


def test_only_a_label_lets_a_pull_request_miss_cases() -> None:
    steps = YAML(typ="safe").load(workflow(WISHES, SOURCE))["jobs"]["judge"]["steps"]
    (judging,) = [step for step in steps if step["name"] == "Judge and report"]
    labels = "contains(github.event.pull_request.labels.*.name, 'cases-removed')"
    assert judging["env"]["ARGUMENTS"] == f"${{{{ {labels} && '--allow-vanished' || '' }}}}"


def test_a_source_is_asked_for_where_it_is_not_known(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.cli.init.known_source", lambda: "nobody knows")
    answer = bandwatch("init")
    told = " ".join(answer.out.split())
    assert answer.code == 0
    assert "3 of 4 files" in told
    assert "no workflow was written: CI cannot install this Bandwatch, for nobody knows" in told
    assert "bandwatch init --source https://" in told
    assert not (project / WORKFLOW).exists()
    assert "1 of 4 files" in bandwatch("init", "--source", PINNED).out
    assert PINNED in (project / WORKFLOW).read_text()


@pytest.mark.parametrize(
    "text",
    [
        "bandwatch",
        SOURCE.url,
        f"{SOURCE.url}@main",
        f"{SOURCE.url}@{SOURCE.commit[:12]}",
        f"http://git.example.org/acme/bandwatch@{SOURCE.commit}",
        f"https://token@git.example.org/acme/bandwatch@{SOURCE.commit}",
        f'https://git.example.org/a"; evil; "@{SOURCE.commit}',
    ],
)
def test_a_source_that_is_not_pinned_or_not_safe_is_refused(
    project: Path, bandwatch: Command, text: str
) -> None:
    answer = bandwatch("init", "--source", text)
    assert answer.code == 2
    assert "expected https://HOST/OWNER/bandwatch@COMMIT" in answer.err
    assert not (project / WORKFLOW).exists()


def push(root: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(root.parent / "bin"), os.environ["PATH"]])
    return subprocess.run(
        ["git", "-C", str(root), "push", "--quiet", "origin", "HEAD"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, False), (3, True), (4, True)])
def test_the_hook_stops_a_push_for_a_regression_only(
    project: Path, bandwatch: Command, code: int, passes: bool
) -> None:
    remote = project.parent / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    fake.git(project, "remote", "add", "origin", str(remote))
    assert ".git/hooks/pre-push" in bandwatch("init", "--hook").out
    tools = project.parent / "bin"
    tools.mkdir()
    (tools / "bandwatch").write_text(f'#!/bin/sh\necho "$@" >{tools}/called\nexit {code}\n')
    (tools / "bandwatch").chmod(0o755)
    done = push(project)
    assert (done.returncode == 0) is passes, done.stderr
    assert (tools / "called").read_text() == "ci --quick\n"
    if not passes:
        assert "--no-verify" in done.stderr


def test_the_hook_comes_alone_too(project: Path, bandwatch: Command) -> None:
    before = sorted(path.name for path in project.iterdir())
    answer = bandwatch("init", "--hook-only")
    assert answer.code == 0
    assert (project / ".git/hooks/pre-push").is_file()
    assert sorted(path.name for path in project.iterdir()) == before
    assert "gpu-bench" not in answer.out


def test_a_hook_of_theirs_is_kept(project: Path, bandwatch: Command) -> None:
    hook = project / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n# theirs\n")
    bandwatch("init", "--hook")
    assert "theirs" in hook.read_text()
    bandwatch("init", "--hook", "--force")
    assert "bandwatch ci" in hook.read_text()
    assert shutil.which("sh")
