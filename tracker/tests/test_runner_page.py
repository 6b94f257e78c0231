"""docs/self-hosted-runner.md: what it tells root to install does what the page says."""

import re
import subprocess
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "self-hosted-runner.md").read_text("utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
JIT = "/run/runner/jit"
CLEANING = "#!/bin/sh\nset -eu\npkill"


def block(start: str) -> str:
    (found,) = [text for text in BLOCKS if text.startswith(start)]
    return str(found)


def test_what_cleans_before_a_job_leaves_the_job_its_configuration() -> None:
    script, service = block(CLEANING), block("[Unit]\nDescription=GitHub Actions runner")
    assert "ExecStartPre=+/usr/local/sbin/runner-clean" in service
    assert JIT in service.partition("ExecStart=")[2].partition("\n")[0]
    assert JIT not in script
    # Gone after the job, or the path unit would start the service for ever.
    assert f"ExecStopPost=+/bin/rm --force {JIT}" in service
    assert f"PathExists={JIT}" in block("[Path]")


def test_the_cleaning_script_empties_the_runner_and_unpacks_it_anew(tmp_path: Path) -> None:
    runner, archive = tmp_path / "runner", tmp_path / "runner.tar.gz"
    (tmp_path / "new").mkdir()
    (tmp_path / "new/run.sh").write_text("GitHub's")
    subprocess.run(["tar", "-czf", archive, "-C", tmp_path / "new", "."], check=True)
    (runner / "_work/job").mkdir(parents=True)
    (runner / "run.sh").write_text("changed by a job")
    (runner / "outside").symlink_to(archive)
    runner.chmod(0o700)
    kept = [
        line
        for line in block(CLEANING).splitlines()
        # What reaches beyond the folder, or needs the user to exist, is not for a test to run.
        if not line.startswith(("pkill", "chown", "find /tmp"))
    ]
    text = "\n".join(kept).replace("/srv/runner", str(runner))
    text = text.replace("/opt/actions-runner.tar.gz", str(archive))
    # It deletes: nothing but this test's own folder.
    assert all(path.startswith(str(tmp_path)) for path in re.findall(r"(?<!\S)/\S*", text))
    done = subprocess.run(
        ["sh"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in runner.iterdir()} == {"run.sh"}
    assert (runner / "run.sh").read_text() == "GitHub's"
    assert runner.stat().st_mode & 0o777 == 0o700
    assert archive.exists()


def test_a_configuration_is_handed_over_whole_and_only_where_one_is_wanted(tmp_path: Path) -> None:
    tools, folder = tmp_path / "bin", tmp_path / "run"
    tools.mkdir()
    folder.mkdir()
    jit = folder / "jit"
    stubs = {
        "runner-feed": block("#!/bin/sh -eu").replace(JIT, str(jit)),
        "sudo": '#!/bin/sh\nexec "$@"\n',
        "ssh": '#!/bin/sh\nshift\nexec "$@"\n',
        "gh": f"#!/bin/sh\necho called >>{tmp_path}/gh\ncat {tmp_path}/answer\n",
        # Two rounds, then the loop ends.
        "sleep": f'#!/bin/sh\necho >>{tmp_path}/naps; [ "$(wc -l <{tmp_path}/naps)" -le 2 ]\n',
    }
    for name, text in stubs.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    rule = block("feeder ALL")
    assert "runner-feed wanted" in rule
    assert "runner-feed take" in rule

    def feed(answer: str) -> list[str]:
        for name in ("naps", "gh"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / "answer").write_text(answer)
        path = f"{tools}:/usr/bin:/bin"
        script = block("#!/usr/bin/env bash")
        subprocess.run(["bash"], input=script, env={"PATH": path}, text=True, check=False)
        return (tmp_path / "gh").read_text().splitlines()

    assert feed("") == ["called", "called"]  # refused by the API: tried again, nothing handed over
    assert not jit.exists()
    assert feed("configuration") == ["called"]  # the second time a runner waits
    assert jit.read_text() == "configuration"
