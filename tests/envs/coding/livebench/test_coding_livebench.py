"""Judgments in LiveBench's files, and our grader beside LiveBench's own.

The tests with the real grader need its repository: `git clone https://github.com/LiveBench/LiveBench`, then
`LIVEBENCH_REPOSITORY=<that folder> pytest tests/envs/coding/livebench/test_coding_livebench.py -m "slow or not slow"`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from format_cases import livebench_question, stdin_case
from livebench_files import MADE, graded, lines
from livebench_pairs import DIFFERENT, SUM, SUMS, fenced, pairs

from envs.coding.family import CodingFamily
from envs.coding.formats.livebench import read, write
from envs.coding.formats.record import FormatError, Record
from envs.coding.livebench import boxed_grader, install
from envs.coding.livebench.graders import SandboxGrader
from envs.coding.livebench.judgments import Answer, judgment_path, read_answers, tidy
from envs.coding.livebench.selection import Item, select
from envs.coding.sandbox import Limits, open_sandbox
from rlanything.cli import main

VARIABLE = "LIVEBENCH_REPOSITORY"
BATCH = 20


def test_judgments_are_in_livebenchs_format(files: dict[str, Path], family: CodingFamily) -> None:
    graded(files, family.sandbox())
    path = files["data"] / "live_bench/coding/LCB_generation/model_judgment/ground_truth_judgment.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [
        (r["question_id"], r["task"], r["model"], r["score"], r["category"], r["answer_id"]) for r in rows
    ] == [
        ("one", "LCB_generation", "m", 1, "coding", "a-one"),
        ("two", "LCB_generation", "m", 0, "coding", "a-two"),
    ]
    assert all(isinstance(row["tstamp"], float) for row in rows)
    assert json.loads((path.parent / "grading.json").read_text()) == {"grader": "ours", **MADE}


def test_judgments_of_two_graders_do_not_mix(files: dict[str, Path], family: CodingFamily) -> None:
    graded(files, family.sandbox())
    record = judgment_path(files["data"], "LCB_generation").parent / "grading.json"
    record.write_text('{"grader": "livebench", "commit": "abc"}')
    with pytest.raises(install.LiveBenchError, match="were made with other backend, commit, grader"):
        graded(files, family.sandbox())


def test_the_last_judgment_of_a_model_counts(tmp_path: Path) -> None:
    rows = [{"question_id": q, "model": "m", "score": s} for q, s in (("b", 0), ("a", 1), ("b", 1))]
    path = lines(tmp_path / "j.jsonl", rows)
    tidy(path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [rows[1], rows[2]]


def test_questions_and_answers_must_be_there(files: dict[str, Path]) -> None:
    answers = read_answers(files["answers"])
    whole = answers["one"].whole
    assert answers["one"] == Answer("one", fenced(SUMS[0]), "a-one", whole)
    assert fenced(SUMS[0]) in whole
    items, missing = select(files["questions"], {"one": answers["one"]}, date(2024, 11, 25))
    assert ([item.problem.source["id"] for item in items], missing) == (["one"], ["two"])
    assert [i.problem.source["id"] for i in select(files["questions"], answers, date(2024, 6, 24))[0]] == [
        "one",
        "old",
    ]
    with pytest.raises(FormatError, match="no question belongs to release 2023-01-01"):
        select(files["questions"], answers, date(2023, 1, 1))
    with pytest.raises(FormatError, match=r"bad.jsonl:1.choices: there is no answer"):
        read_answers(lines(files["data"] / "bad.jsonl", [{"question_id": "x", "choices": []}]))


def test_the_command_grades_with_our_grader(
    files: dict[str, Path], family: CodingFamily, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "livebench",
        "grade",
        "--grader",
        "ours",
        "--model",
        "m",
        "--release",
        "2024-11-25",
        "--workers",
        "1",
    ]
    for name, path in files.items():
        words += [f"--{name}", str(path)]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "m  release 2024-11-25  LCB_generation: 50.0 of 100 (2 answers)" in printed.out
    assert "ours: 2 of 2" in printed.err
    words[words.index("ours")] = "livebench"
    assert main([*words, "--folder", str(files["data"])]) == 2
    assert "run `rlanything livebench setup --repository PATH` first" in capsys.readouterr().err


def test_the_ids_of_questions_move_no_cursor(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of questions may be a stranger's."""
    questions = [json.loads(line) for line in files["questions"].read_text().splitlines()]
    evil = {**questions[0], "question_id": "q\x1b]0;owned\x07\x1b[2J"}
    lines(files["questions"], [*questions, evil])
    words = ["livebench", "grade", "--grader", "ours", "--model", "m", "--release", "2024-11-25"]
    words += ["--workers", "1", "--ignore-missing-answers"]
    for name, path in files.items():
        words += [f"--{name}", str(path)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "without an answer, and in no score: q\\x1b]0;owned" in printed
    assert "\x1b" not in printed


def test_a_question_in_two_of_the_files_is_refused_and_not_counted_twice(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["livebench", "grade", "--grader", "ours", "--model", "m", "--release", "2024-11-25"]
    words += ["--answers", str(files["answers"]), "--data", str(files["data"])]
    assert main([*words, "--questions", *[str(files["questions"])] * 2]) == 2
    assert "question 'one' stands in two of the files" in capsys.readouterr().err


@pytest.mark.parametrize("release", ["2024-8-31", "24-07-26", "latest", "2024-11-31", ""])
def test_a_release_is_a_date(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], release: str
) -> None:
    words = ["livebench", "grade", "--grader", "ours", "--model", "m", "--release", release]
    for name, path in files.items():
        words += [f"--{name}", str(path)]
    assert main(words) == 2
    message = f"--release {release!r}: must be a date as year-month-day, e.g. 2024-11-25"
    assert message in capsys.readouterr().err
    assert not files["data"].exists()


def test_setup_refuses_what_is_not_livebench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["livebench", "setup", "--repository", str(tmp_path), "--folder", str(tmp_path / "x")]
    assert main(words) == 2
    assert "it must be a clone of LiveBench's repository" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> install.Installation:
    if VARIABLE not in os.environ:
        pytest.skip(
            f"no LiveBench here: clone https://github.com/LiveBench/LiveBench and set {VARIABLE} to its folder"
        )
    folder = Path(os.environ.get("LIVEBENCH_FOLDER", "") or tmp_path_factory.mktemp("livebench"))
    if not (folder / install.RECORD).is_file():
        install.setup(Path(os.environ[VARIABLE]), folder)
    return install.read(folder)


@pytest.fixture(scope="session")
def ours(installed: install.Installation) -> Iterator[SandboxGrader]:
    limits = Limits(memory_mb=4096)
    with open_sandbox(workers=2, limits=limits, packages=installed.importable()) as sandbox:
        yield SandboxGrader(sandbox, 2, MADE)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_our_grader_and_livebenchs_agree(installed: install.Installation, ours: SandboxGrader) -> None:
    """On every one of more than 200 pairs of question and program."""
    items = [Item(read(Record(q)), Answer(str(q["question_id"]), text)) for q, text in pairs()]
    assert len(items) >= 200
    our_grades = list(ours.grades(items))
    theirs: list[boxed_grader.Grade] = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        tests = sum(len(item.problem.cases) for item in batch)
        theirs += boxed_grader.grade_in_box(
            installed, [(write(i.problem), i.answer.text) for i in batch], tests
        )
    different = [
        (item.answer.text, their, our)
        for item, their, our in zip(items, theirs, our_grades, strict=True)
        if their != our
    ]
    print(
        f"{len(items) - len(different)} of {len(items)} pairs agree, {sum(g.score or 0 for g in our_grades)} are right"
    )
    assert different == []
    assert 60 <= sum(grade.score or 0 for grade in theirs) <= len(items) - 60


@pytest.mark.slow
@pytest.mark.integration
def test_where_the_graders_are_known_to_differ(installed: install.Installation, ours: SandboxGrader) -> None:
    """docs/coding.md lists these; a program that is run as Python runs it may score otherwise in LiveBench."""
    items = [Item(read(Record(SUM)), Answer("q1", program)) for program, _, _ in DIFFERENT]
    theirs = boxed_grader.grade_in_box(
        installed, [(write(i.problem), i.answer.text) for i in items], 3 * len(items)
    )
    found = [(t.score, our.score) for t, our in zip(theirs, ours.grades(items), strict=True)]
    assert found == [(their, our) for _, their, our in DIFFERENT]


@pytest.mark.slow
@pytest.mark.integration
def test_a_graded_program_writes_nothing_on_this_machine(
    installed: install.Installation, tmp_path: Path
) -> None:
    """LiveBench's grader disables `os.remove` and the like, not `open`; the box does the rest."""
    place, repository = tmp_path / "written", Path(installed.repository, "written")
    program = "\n".join(
        [
            "import builtins, io",
            f"for path in ({str(place)!r}, {str(repository)!r}):",
            "    try:",
            "        io.open(path, 'w').write('x')",
            "    except OSError as error:",
            "        print(type(error).__name__)",
        ]
    )
    question = livebench_question(
        public_test_cases=json.dumps([stdin_case("", "FileNotFoundError\nOSError\n")]),
        private_test_cases="[]",
    )
    found = boxed_grader.grade_in_box(installed, [(write(read(Record(question))), program)], 1)
    assert found == [boxed_grader.Grade(1)]
    assert not place.exists()
    assert not repository.exists()


@pytest.mark.slow
@pytest.mark.integration
def test_the_command_with_both_graders(
    installed: install.Installation, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["livebench", "grade", "--grader", "both", "--model", "m", "--release", "2024-11-25"]
    for name, path in files.items():
        words += [f"--{name}", str(path)]
    assert main([*words, "--folder", str(Path(installed.python).parents[2])]) == 0
    assert "graders: 2 of 2 scores are the same" in capsys.readouterr().out
    record = json.loads((judgment_path(files["data"], "LCB_generation").parent / "grading.json").read_text())
    assert (record["grader"], record["commit"]) == ("livebench", installed.commit)
    assert record["packages"]["numpy"] == installed.packages["numpy"]
