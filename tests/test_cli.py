"""The command line: exit codes, one-line errors, and the dry run."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlanything import __version__, cli
from rlanything.core.errors import EnvironmentFailure
from rlanything.planning import compose
from rlanything.stages import tasks

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path) -> Path:
    """A root with a tiny configuration, the real experiments/ and no data."""
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    compose.write(tmp_path / "params.yaml", ["scale=smoke"], tmp_path)
    return tmp_path


def run(project: Path, *words: str) -> int:
    return cli.main(["--root", str(project), *words])


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"rlanything {__version__}\n"


@pytest.mark.parametrize("words", [(), ("trian",), ("config",)])
def test_a_wrong_command_line_is_exit_2(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(list(words))
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "--arm", "ful"], "arm 'ful': unknown; did you mean 'full'?"),
        (["evaluate", "--arm", "ful"], "arm 'ful': unknown; did you mean 'full'?"),
        (["plan", "--arm", "ful"], "arm 'ful': unknown; did you mean 'full'?"),
        (["config", "write", "scale=smok"], "did you mean 'smoke'?"),
        (["config", "check", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["config", "check", "signals.lambda"], "no such file; a value is written signals.lambda=VALUE"),
        (["config", "check", "a.yaml", "b.yaml"], "takes one FILE, or key=value"),
        (["config", "check", "a.yaml", "scale=smoke"], "override 'a.yaml': expected key=value"),
        (["config", "check", "scale=smok"], "did you mean 'smoke'?"),
        (["config", "check", "scale=smoke", "judge.m=0"], "judge.m = 0"),
        (["config", "check", "env.engine=fats"], "engine: 'fats' is not one of fast, textworld"),
        (["bootstrap"], "make it with `rlanything tasks`"),
        (["report"], "base.json"),
    ],
)
def test_expected_errors_are_exit_2_without_a_traceback(project, capsys, words, expected):
    assert run(project, *words) == 2
    message = capsys.readouterr().err
    assert message.startswith("rlanything: ")
    assert expected in message
    assert "Traceback" not in message


def test_every_stage_checks_the_configuration_first(project, capsys):
    path = project / "params.yaml"
    path.write_text(path.read_text().replace("engine: fast", "engine: fats"))
    for words in (
        ["tasks"],
        ["bootstrap"],
        ["train", "--arm", "full"],
        ["evaluate", "--arm", "base"],
        ["report"],
    ):
        assert run(project, *words) == 2
        assert "env: engine: 'fats' is not one of fast, textworld" in capsys.readouterr().err
    assert sorted(p.name for p in project.iterdir()) == ["experiments", "params.yaml"]


def test_a_stage_of_arms_without_one_names_them(project, capsys):
    assert run(project, "train") == 2
    assert "--arm is missing; known: full, outcome, policy, policy_reward" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["train", "evaluate"])
def test_the_usage_of_a_stage_of_arms_shows_that_one_is_required(stage, capsys):
    with pytest.raises(SystemExit):
        cli.main([stage, "--help"])
    usage = capsys.readouterr().out.partition("\n\n")[0]
    assert " --arm ARM" in usage
    assert "[--arm" not in usage
    assert cli.build_parser().parse_args([stage]).arm == "", "the command itself names the known arms"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            "coding_data",
            "there is no file $CODING_DATA/CodeContests_train.json; an environment variable in it is not",
        ),
        ("osworld", "there is no folder $OSWORLD_DATA; set the environment variable OSWORLD_DATA to it"),
    ],
)
def test_config_check_says_which_files_of_tasks_are_missing(project, capsys, monkeypatch, env, said):
    for name in ("CODING_DATA", "OSWORLD_DATA"):
        monkeypatch.delenv(name, raising=False)
    page = {"coding_data": "docs/coding.md says where", "osworld": "docs/osworld.md says how to get it"}[env]
    check, write = ["check"], ["write", f"--output={project / 'other.yaml'}"]
    for words, code, mark in ((check, 2, "rlanything: env: "), (write, 0, "rlanything: warning: env: ")):
        assert run(project, "config", *words, "scale=paper", f"env={env}") == code
        told = capsys.readouterr().err
        assert mark in told
        assert said in told
        assert page in told


def test_config_check_lists_every_problem(project, capsys):
    path = project / "params.yaml"
    path.write_text(path.read_text().replace("m: 3", "m: 0").replace("alpha_low: 0.2", "alpha_low: 0.9"))
    assert run(project, "config", "check") == 2
    message = capsys.readouterr().err
    assert "judge.m = 0" in message
    assert "alpha_low = 0.9 must be below alpha_high = 0.8" in message


def test_config_check_checks_a_composition_and_writes_nothing(project, capsys):
    before = (project / "params.yaml").read_bytes()
    assert run(project, "config", "check", "scale=smoke", "signals.lambda=0.5") == 0
    assert capsys.readouterr().out.startswith(
        "scale=smoke signals.lambda=0.5: valid (scale smoke, arms outcome, "
    )
    assert (project / "params.yaml").read_bytes() == before


def test_config_show_prints_what_write_writes(project, capsys):
    assert run(project, "config", "write", "scale=smoke", "--output", str(project / "other.yaml")) == 0
    capsys.readouterr()
    assert run(project, "config", "show", "scale=smoke") == 0
    assert capsys.readouterr().out == (project / "other.yaml").read_text()


def test_config_write_brings_the_pipeline_up_to_date_however_params_yaml_is_named(project, monkeypatch):
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    for output, is_old in (("../other.yaml", True), ("../params.yaml", False)):
        (project / "dvc.yaml").write_text("old")
        assert run(project, "config", "write", "scale=smoke", "--output", output) == 0
        assert ((project / "dvc.yaml").read_text() == "old") == is_old


def fail_with(monkeypatch, error: BaseException) -> None:
    def stage(config, root):
        raise error

    monkeypatch.setattr(tasks, "make_tasks", stage)


def test_interruption_is_exit_130_and_names_the_command_that_resumes(project, capsys, monkeypatch):
    fail_with(monkeypatch, KeyboardInterrupt())
    assert run(project, "tasks") == 130
    message = capsys.readouterr().err
    assert "interrupted" in message
    assert message.rstrip().endswith(f"rlanything --root {project} tasks")


@pytest.mark.parametrize("code", [None, 0, 1, "bye"])
def test_code_that_ends_the_program_is_exit_2_and_said(project, capsys, monkeypatch, code):
    fail_with(monkeypatch, SystemExit(code))
    assert run(project, "tasks") == 2
    assert f"ended it with sys.exit({code!r}). It is not done" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_not_be_written_is_exit_2_in_one_line(project, capsys, monkeypatch, number):
    fail_with(monkeypatch, OSError(number, "Refused", "data/tasks"))
    assert run(project, "tasks") == 2
    assert capsys.readouterr().err == (
        "rlanything: Refused: data/tasks. What a command writes, it writes into the project's folder; --root names "
        "another one\n"
    )


def test_a_full_disk_is_exit_2_in_one_line(project, capsys, monkeypatch):
    fail_with(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "runs/full"))
    assert run(project, "tasks") == 2
    assert capsys.readouterr().err == (
        "rlanything: No space left on device: runs/full. Free some space; "
        f"the same command goes on from there: rlanything --root {project} tasks\n"
    )


def test_errors_of_the_project_are_expected_and_bugs_are_not(project, capsys, monkeypatch):
    fail_with(monkeypatch, EnvironmentFailure("said in one sentence"))
    assert run(project, "tasks") == 2
    assert capsys.readouterr().err == "rlanything: said in one sentence\n"
    with pytest.raises(EnvironmentFailure):
        run(project, "--traceback", "tasks")
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run(project, "tasks")


def test_the_plan_shows_counts_and_does_nothing(project, capsys):
    sizes = ["rollout.tasks=4", "rollout.rollouts=4", "rollout.max_steps=8", "judge.m=3", "learn.updates=2"]
    sizes += ["train.iterations=2", "train.seeds=1"]
    compose.write(project / "params.yaml", ["scale=smoke", *sizes], project)
    assert run(project, "plan") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "scale: smoke" not in lines
    rows = {line.split()[0]: line.split()[1:] for line in lines if line}
    # 2 iterations x 4 tasks x 4 rollouts; at most 8 steps x 3 votes; an adapting arm may do it all twice
    assert rows["outcome"][:4] == ["32", "0", "0", "4"]
    assert rows["policy"][:4] == ["32", "0", "768", "4"]
    assert rows["policy_reward"][:4] == ["32", "0", "768", "8"]
    assert rows["full"][:4] == ["32", "32", "1,536", "8"]
    assert rows["training"][:4] == ["seeds:", "1,", "iterations:", "2"]
    assert sorted(p.name for p in project.iterdir()) == ["experiments", "params.yaml"]


def test_the_dry_run_of_train_plans_one_arm(project, capsys):
    assert run(project, "train", "--arm", "full", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "\nfull " in out
    assert "\noutcome " not in out


def test_a_reader_that_stops_early_gets_no_traceback_and_the_exit_code_of_a_closed_pipe():
    command = [sys.executable, "-m", "rlanything", "config", "show"]
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


def closed(words, *streams, folder=ROOT, code="from rlanything.cli import main; raise SystemExit(main())"):
    """What a command says whose shell closed these streams, as `>&-` does; `code` is what Python runs."""
    shell = f'exec "$@" {" ".join(f"{stream}>&-" for stream in streams)}'
    command = ["sh", "-c", shell, "sh", sys.executable, "-c", code, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


LOST = "rlanything: standard output is closed, so what this command printed is lost; what it wrote into files is kept\n"


@pytest.mark.parametrize("words", [["config", "show"], ["ls"], ["--version"]])
def test_what_is_printed_on_a_closed_standard_output_is_said_to_be_lost(project, words):
    done = closed(["--root", str(project), *words], 1)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", LOST)


def test_a_closed_standard_output_is_no_trouble_where_nothing_is_printed(tmp_path):
    """Neither does what a child process prints end in the file that was opened next."""
    code = """
import subprocess
from pathlib import Path
from rlanything import cli

def answer(parser, words):
    with Path("results.txt").open("w") as file:
        file.write("mine")
        file.flush()
        subprocess.run(["echo", "of a child"], check=True)
    return 1

cli.answer = answer
raise SystemExit(cli.main())
"""
    done = closed([], 1, folder=tmp_path, code=code)
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "results.txt").read_text() == "mine"


def test_a_mistake_is_still_the_mistake_that_is_said(project):
    done = closed(["--root", str(project), "train", "--arm", "nobody"], 1)
    assert done.returncode == 2
    assert "nobody" in done.stderr
    assert LOST not in done.stderr


def test_a_message_does_not_end_in_the_answer_where_standard_error_is_closed(project):
    done = closed(["--root", str(project), "train", "--arm", "nobody"], 2)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert closed(["--root", str(project), "config", "show"], 2).stdout.startswith(
        "# The composed configuration"
    )
    assert closed(["--root", str(project), "config", "show"], 0, 1, 2).returncode == 2
