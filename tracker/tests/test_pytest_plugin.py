"""`pytest --benchmark` in sample projects: what is stored, printed and returned to the shell."""

from dataclasses import replace

import pytest

from tracker.queries import ancestors, load_run
from tracker.record import load_run as load_file
from tracker.store import Store
from tracker.tests.sandbox import GPU, H200, Sandbox, alone, envelope, on_gpu, wrong

pytest_plugins = ("pytester",)


@pytest.fixture
def sandbox(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    return alone(pytester, monkeypatch, columns=140)


def text(result: pytest.RunResult) -> str:
    return str(result.stdout)


def test_plain_pytest_stores_nothing_and_prints_nothing_of_ours(sandbox: Sandbox) -> None:
    record = envelope()
    record["result"] |= {"measurements_s": [], "summary": None}
    sandbox.records(relu=record)
    result = sandbox.run()
    assert result.ret == 0
    assert "bandwatch ==" not in text(result)
    assert "bandwatch:" not in text(result)
    assert not sandbox.file.parent.exists()


def test_plain_pytest_loads_no_database(sandbox: Sandbox) -> None:
    sandbox.records({"relu": "assert 'sqlalchemy' not in sys.modules"}, relu=envelope())
    assert sandbox.run(subprocess=True).ret == 0


def test_the_first_run_is_recorded_and_names_the_device(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope(), add=envelope("add"))
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert "no NVIDIA GPU: measured the CPU Test CPU, 2 threads, torch 2.13.0" in text(result)
    assert "2 no baseline of 2 cases: exit 0" in text(result)
    assert f"recorded in sqlite:///{sandbox.file}" in text(result)
    (run,) = sandbox.stored()
    assert (run.results, run.complete, run.checkout.dirty) == (2, True, False)
    assert run.checkout.branch == "main"
    assert sandbox.statuses() == {"add": ("ok", 40), "relu": ("ok", 40)}


def test_a_second_run_is_judged_against_the_first(sandbox: Sandbox) -> None:
    sandbox.records(relu=on_gpu())
    sandbox.run("--benchmark")
    sandbox.records(relu=on_gpu(seed=2))
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert "= no change" in text(result)
    assert "newest earlier run of this commit" in text(result)


def test_a_slower_commit_is_a_regression_and_exit_1(sandbox: Sandbox) -> None:
    sandbox.records(relu=on_gpu(), add=on_gpu("add"))
    sandbox.run("--benchmark")
    sandbox.commit()
    sandbox.records(relu=on_gpu(factor=1.2, seed=2), add=on_gpu("add", seed=3))
    result = sandbox.run("--benchmark")
    assert result.ret == 1
    assert "▲ slower" in text(result)
    assert "1 regression, 1 no change of 2 cases: exit 1" in text(result)
    assert "the parent commit" in text(result)


def test_undecided_alone_fails_no_test_and_is_told(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark")
    sandbox.records(relu=envelope(factor=1.1, seed=2))
    result = sandbox.run("--benchmark")
    assert "1 undecided of 1 case: exit 3" in text(result)
    assert ", 1 result" in text(result)
    assert "1 results" not in text(result)
    assert "pytest exits 0, `bandwatch check` exits 3" in text(result)
    assert result.ret == 0


def test_a_failed_test_keeps_pytest_s_exit_and_stores_no_time(sandbox: Sandbox) -> None:
    sandbox.records(
        {"relu": "raise AssertionError", "add": "raise AssertionError"},
        relu=envelope(),
        add=wrong("add"),
        silu=envelope("silu"),
    )
    result = sandbox.run("--benchmark")
    assert result.ret == 1
    assert sandbox.statuses() == {
        "add": ("incorrect", 0),
        "relu": ("error", 0),
        "silu": ("ok", 40),
    }
    assert "! incorrect" in text(result)
    # What was wrong, no promise that such a run becomes a baseline, and no exit 0 that was none.
    assert "counts for nothing: 3 elements differ" in text(result)
    assert text(result).count("this one becomes the baseline") == 1
    assert "pytest exits 0" not in text(result)


def test_a_session_that_measured_nothing_says_so(sandbox: Sandbox) -> None:
    sandbox.pytester.makepyfile(test_other="def test_nothing(): pass")
    result = sandbox.run("--benchmark", "test_other.py")
    assert result.ret == 3
    assert "nothing was measured: no test that ran left a result" in text(result)
    assert sandbox.stored() == ()


def test_a_session_without_any_test_measured_nothing(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    result = sandbox.run("--benchmark", "-k", "no_such_test")
    assert result.ret == 3
    assert "nothing was measured" in text(result)


def test_nothing_measured_is_explained_by_what_kept_it_from_that(sandbox: Sandbox) -> None:
    told = "nothing was measured: no test that ran left a result"
    ends = "import pytest; pytest.exit('environment unfit: held', returncode=4)"
    sandbox.records({"relu": ends}, relu=envelope())
    result = sandbox.run("--benchmark", subprocess=True)
    assert result.ret == 4
    assert f"{told} (the session was interrupted); nothing is recorded" in text(result)
    assert "is the suite among the paths" not in text(result)
    sandbox.pytester.makepyfile(test_other="def test_fails(): assert 0")
    result = sandbox.run("--benchmark", "suite", "test_other.py", "--deselect=suite")
    assert f"{told} (--deselect selected a part; 1 failed); nothing is recorded" in text(result)


def test_checked_but_not_timed_is_nothing_measured(sandbox: Sandbox) -> None:
    record = envelope()
    record["result"] |= {"measurements_s": [], "summary": None}
    sandbox.records(relu=record)
    result = sandbox.run("--benchmark")
    assert result.ret == 3
    assert "1 result checked and not timed" in text(result)


def test_a_selection_makes_a_part_and_nothing_vanishes_from_it(sandbox: Sandbox) -> None:
    sandbox.records(relu=on_gpu(), add=on_gpu("add"))
    sandbox.run("--benchmark")
    result = sandbox.run("--benchmark", "-k", "relu")
    assert result.ret == 0
    newest = sandbox.stored()[0]
    assert (newest.complete, newest.results) == (False, 1)
    assert newest.notes == ("a part of the suite: -k selected a part",)


def test_a_single_file_is_a_part_and_the_suite_s_folder_is_not(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark", "suite/test_suite.py")
    sandbox.run("--benchmark", "suite")
    assert [run.complete for run in sandbox.stored()] == [True, False]


def test_a_case_that_a_whole_run_lacks_has_vanished(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope(), add=envelope("add"))
    sandbox.run("--benchmark")
    sandbox.commit()
    sandbox.records(relu=envelope(seed=2))
    result = sandbox.run("--benchmark")
    assert result.ret == 3
    assert "the run that was judged does not" in text(result)


def test_stopping_at_the_first_failure_makes_a_part(sandbox: Sandbox) -> None:
    sandbox.records({"a": "raise AssertionError"}, a=wrong(), b=envelope("add"))
    assert sandbox.run("--benchmark", "-x").ret == 1
    assert sandbox.stored()[0].complete is False


def test_an_interrupted_session_keeps_what_it_measured_as_a_part(sandbox: Sandbox) -> None:
    sandbox.records({"b": "raise KeyboardInterrupt"}, a=envelope(), b=envelope("add"))
    result = sandbox.run("--benchmark", subprocess=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (run,) = sandbox.stored()
    assert run.complete is False
    assert "interrupted" in run.notes[0]


def test_workers_of_xdist_change_nothing(sandbox: Sandbox) -> None:
    pytest.importorskip("xdist")
    names = {f"k{i}": envelope(f"k{i}") for i in range(6)}
    sandbox.records({"k0": "raise AssertionError"}, **names)
    result = sandbox.run("--benchmark", "-n", "2", subprocess=True)
    assert result.ret == 1
    (run,) = sandbox.stored()
    assert run.results == 6
    assert sandbox.statuses()["k0"] == ("error", 0)
    assert sandbox.statuses()["k5"] == ("ok", 40)
    assert text(result).count("= bandwatch =") == 1


def test_each_device_is_a_run_of_its_own(sandbox: Sandbox) -> None:
    sandbox.records(
        relu=envelope(environment=H200, device=GPU),
        add=envelope("add", environment=H200, device=replace(GPU, uuid="GPU-2")),
        silu=envelope("silu"),
    )
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert sorted(run.device.uuid for run in sandbox.stored()) == ["GPU-1", "GPU-2", "cpu-1"]
    assert text(result).count("measured the GPU NVIDIA H200, driver 580.95, CUDA 13.0") == 2
    assert [run.complete for run in sandbox.stored()].count(False) == 2


def test_an_unused_gpu_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.session.has_nvidia_gpu", lambda: True)
    sandbox.records(relu=envelope())
    result = sandbox.run("--benchmark")
    assert "an NVIDIA GPU is there but was not used: measured the CPU" in text(result)


def test_a_record_that_is_none_is_one_line_and_exit_2(sandbox: Sandbox) -> None:
    sandbox.records(relu={"schema": 1, "kind": "result"}, add=envelope("add"))
    result = sandbox.run("--benchmark")
    assert result.ret == 2
    assert "not recorded: cannot read the record of suite/test_suite.py" in text(result)
    assert sandbox.statuses() == {"add": ("ok", 40)}


def test_a_bad_store_is_told_before_anything_is_measured(sandbox: Sandbox) -> None:
    sandbox.records({"relu": "pathlib.Path('ran').touch()"}, relu=envelope())
    result = sandbox.run("--benchmark", "--bandwatch-store", "mysql://me:hunter2@host/db")
    assert result.ret == 2
    assert "mysql is no known engine" in text(result) + str(result.stderr)
    assert "hunter2" not in text(result) + str(result.stderr)
    assert not (sandbox.folder / "ran").exists()


def test_bad_settings_are_told_before_anything_is_measured(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.pytester.makepyprojecttoml("[tool.bandwatch]\nsuit = ['suite']\n")
    result = sandbox.run("--benchmark")
    assert result.ret == 2
    assert "unknown key 'suit'" in text(result) + str(result.stderr)


def test_the_flag_chooses_the_store(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark", "--bandwatch-store", "sqlite:///flag.db")
    assert (sandbox.folder / "flag.db").is_file()
    assert not sandbox.file.exists()


def test_the_variable_chooses_the_store(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDWATCH_STORE", "sqlite:///variable.db")
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark")
    assert (sandbox.folder / "variable.db").is_file()


def test_a_password_on_the_command_line_is_not_stored(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    # -o takes any text, and the command is stored whole.
    sandbox.run("--benchmark", "-o", "cache_dir=postgresql://me:hunter2@host/db")
    (run,) = sandbox.stored()
    assert run.command is not None
    assert "hunter2" not in run.command
    assert run.command.startswith("pytest ")


def test_a_store_that_breaks_while_measuring_loses_nothing(sandbox: Sandbox) -> None:
    sandbox.records(
        {"relu": "pathlib.Path('.bandwatch/bandwatch.db').write_text('rubbish' * 1000)"},
        relu=envelope(),
    )
    result = sandbox.run("--benchmark")
    assert result.ret == 2
    assert "record it with: bandwatch record" in text(result)
    (kept,) = (sandbox.folder / ".bandwatch").glob("unrecorded-*.json")
    sandbox.file.unlink()
    with Store.open(str(sandbox.file)) as store:
        run = load_file(kept)
        store.record(run)
        assert load_run(store, run.run_id) == run


def test_outside_a_checkout_results_are_kept_and_that_is_said(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(sandbox.folder.parent))
    (sandbox.folder / ".git").rename(sandbox.folder / "no-git")
    sandbox.records(relu=envelope())
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert "no git checkout" in text(result)
    assert sandbox.stored()[0].sha is None


def test_uncommitted_changes_are_marked(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    (sandbox.folder / ".gitignore").open("a").write("more\n")
    result = sandbox.run("--benchmark")
    assert "with uncommitted changes" in text(result)
    assert sandbox.stored()[0].checkout.dirty is True


def test_hostile_names_reach_the_terminal_harmless(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope("\x1b[31m::error::x\u202e"))
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert r"\x1b[31m" in text(result)
    assert "\x1b[31m" not in text(result)


def test_collecting_only_does_nothing(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    assert sandbox.run("--benchmark", "--collect-only").ret == 0
    assert not sandbox.file.exists()


def test_it_works_without_pytest_benchmark(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    assert sandbox.run("--benchmark", "-p", "no:benchmark").ret == 0
    assert len(sandbox.stored()) == 1


def test_the_flag_takes_no_value_and_swallows_no_path(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    assert sandbox.run("--benchmark=relu").ret == pytest.ExitCode.USAGE_ERROR
    assert sandbox.run("--benchmark", "suite").ret == 0
    assert len(sandbox.stored()) == 1


def test_ci_is_kept_with_the_run(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_RUN_ID": "7",
        "GITHUB_JOB": "bench",
    }.items():
        monkeypatch.setenv(name, value)
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark")
    assert sandbox.stored()[0].ci == {
        "name": "github",
        "url": "https://github.com/o/r/actions/runs/7",
        "job": "bench",
    }


def test_commits_in_between_are_learned_for_the_order_of_series(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark")
    sandbox.commit()
    sandbox.commit()
    sandbox.run("--benchmark")
    newest, first = sandbox.stored()
    with Store.open(str(sandbox.file), read_only=True) as store:
        line = ancestors(store, str(newest.sha))
    assert len(line) == 2
    assert line[-1] == first.sha
