"""Formats of problems: what is read is what was written, and every complaint says where."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from format_cases import (
    RECORDS,
    SAMPLES,
    codecontests_row,
    functional_case,
    json_value,
    livebench_question,
    livecodebench_problem,
    reference_item,
    stdin_case,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.formats import files
from envs.coding.formats.blob import pack
from envs.coding.formats.files import FORMATS, load, save
from envs.coding.formats.livebench import in_release, write
from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Comparison, Problem, ProblemError
from rlanything.core.types import Task
from rlanything.files.reader import FileError


def read(form: str, record: Any) -> Problem:
    return FORMATS[form].read(Record(record))


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_written_reads_as_the_same_problem(form: str, data: st.DataObject) -> None:
    problem = read(form, data.draw(RECORDS[form]))
    record = FORMATS[form].write(problem)
    assert read(form, json.loads(json.dumps(record))) == problem


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_problem_survives_being_a_task(form: str, data: st.DataObject) -> None:
    problem = read(form, data.draw(RECORDS[form]))
    task = Task.from_json(json.loads(json.dumps(problem.to_task({"split": "train"}).to_json())))
    assert Problem.from_task(task) == problem


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_of_a_record_is_lost(form: str) -> None:
    record = SAMPLES[form]()
    written = FORMATS[form].write(read(form, record))
    blobs = ("private_test_cases",)
    assert {k: v for k, v in record.items() if k not in blobs} == {
        k: written[k] for k in record if k not in blobs
    }


def test_a_livebench_question() -> None:
    problem = read("livebench", livebench_question())
    assert problem.statement == "Print the sum of two numbers."
    assert problem.cases == (Case("1 2\n", "3\n"), Case("5 5\n", "10\n"))
    assert (problem.public, problem.function, problem.compare) == (1, "", Comparison.LINES)
    assert (problem.difficulty, problem.source["id"], problem.time_s) == ("easy", "q1", 6.0)


def test_a_livecodebench_problem() -> None:
    problem = read("livecodebench", livecodebench_problem())
    assert (problem.function, problem.compare) == ("add", Comparison.VALUE)
    assert problem.cases[1] == Case("[]\n0", "0")
    assert problem.starter.startswith("class Solution")


def test_a_codecontests_row() -> None:
    problem = read("codecontests", codecontests_row())
    assert len(problem.cases) == 4
    assert (problem.public, problem.time_s, problem.memory_mb) == (1, 1.5, 256)
    assert problem.difficulty == "c"
    assert problem.solution == "print(sum(map(int, input().split())))"


def test_an_item_of_the_reference_code() -> None:
    problem = read("reference", reference_item())
    assert problem.cases[0] == Case("5\n1 2 3 4 5\n", "15")
    assert problem.time_s == 6
    assert (
        read("reference", {k: v for k, v in reference_item().items() if not k.startswith("test_t")}).time_s
        == 1
    )


MALFORMED = [
    ("livebench", {"category": "math"}, "category: 'math' is not one of coding"),
    ("livebench", {"task": "LCB_generations"}, "did you mean LCB_generation"),
    ("livebench", {"task": "coding_completion"}, "partial_solution: a completion task needs one"),
    ("livebench", {"livebench_removal_date": "soon"}, "livebench_removal_date: 'soon' is not a date"),
    ("livebench", {"turns": []}, "turns: 0 turns"),
    ("livebench", {"turns": [3]}, "turns[0]: the number 3 where a text must stand"),
    ("livebench", {"original_json": None}, "original_json: null"),
    ("livebench", {"original_json": {"metadata": "{"}}, "original_json.metadata: not JSON"),
    ("livebench", {"original_json": {"metadata": "[]"}}, "original_json.metadata: a list where an object"),
    ("livebench", {"public_test_cases": "[1]"}, "public_test_cases[0]: the number 1 where an object"),
    ("livebench", {"public_test_cases": "{}"}, "public_test_cases: an object where a list"),
    ("livebench", {"public_test_cases": json.dumps([functional_case()])}, "public_test_cases[0].testtype"),
    (
        "livebench",
        {"private_test_cases": "not base64!"},
        "private_test_cases: neither JSON nor a packed text",
    ),
    ("livebench", {"private_test_cases": pack("[}")}, "private_test_cases: not JSON"),
    ("livebench", {"public_test_cases": "[]", "private_test_cases": "[]"}, "there are no tests"),
    ("livebench", {"question_id": ""}, "question_id: an empty text where a name"),
    ("livebench", {"turns": ["\ud800"]}, "turns[0]: half a surrogate pair"),
    ("livecodebench", {"metadata": '{"func_name": "a b"}'}, "function: 'a b' is no name"),
    (
        "livecodebench",
        {"public_test_cases": json.dumps([functional_case("[1,")])},
        "public_test_cases[0].input: not JSON",
    ),
    (
        "livecodebench",
        {"public_test_cases": json.dumps([stdin_case()])},
        "testtype: 'stdin', but metadata names",
    ),
    (
        "codecontests",
        {"public_tests": {"input": ["1"], "output": []}},
        "public_tests.output: 0 outputs for 1",
    ),
    ("codecontests", {"difficulty": 99}, "difficulty: 99 is not from 0 to 29"),
    ("codecontests", {"input_file": "in.txt"}, "input_file: the problem wants files"),
    ("codecontests", {"time_limit": {"seconds": -3, "nanos": 0}}, "time_s: -3.0 is not above 0"),
    (
        "codecontests",
        {"solutions": {"language": [3], "solution": []}},
        "solutions.language: not one language",
    ),
    ("codecontests", {"memory_limit_bytes": 2**60}, "memory_mb"),
    ("reference", {"test_method": "function"}, "test_method: 'function'; only 'stdio'"),
    ("reference", {"test_output": ["15"]}, "test_output: 1 outputs for 2 inputs"),
    ("reference", {"test_input": [5, 6]}, "test_input[0]: the number 5"),
    ("reference", {"test_time_limit": True}, "test_time_limit: true or false"),
    ("reference", {"question": " "}, "question: a text where a name"),
]


@pytest.mark.parametrize(("form", "changes", "said"), MALFORMED)
def test_what_is_malformed_is_refused_with_file_line_and_field(
    form: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    good, bad = SAMPLES[form](), SAMPLES[form](**changes)
    key = "question" if form == "reference" else "name" if form == "codecontests" else "question_id"
    if key not in changes:
        bad[key] = "another"
    path = tmp_path / "problems.json"
    lines = FORMATS[form].lines
    path.write_text("".join(json.dumps(r) + "\n" for r in (good, bad)) if lines else json.dumps([good, bad]))
    with pytest.raises(FormatError) as error:
        load(path, form)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{path}:2: " if lines else f"{path}[1]: ")
    kept, refused = load(path, form, skip=True)
    assert (len(kept), len(refused)) == (1, 1)


def test_a_missing_field_is_named_with_the_nearest_one() -> None:
    item = reference_item()
    item["questions"] = item.pop("question")
    with pytest.raises(FormatError, match=r"question: missing \(is 'questions' meant\?\)"):
        read("reference", item)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_record_whatever_it_holds_raises_anything_else(form: str, data: st.DataObject) -> None:
    record = SAMPLES[form]()
    for field in data.draw(st.lists(st.sampled_from(sorted(record)), max_size=3)):
        record[field] = data.draw(json_value | st.lists(json_value, max_size=2))
    try:
        problem = read(form, record)
    except (FormatError, ProblemError):
        return
    assert Problem.from_task(problem.to_task()) == problem


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    with pytest.raises(FormatError, match="No such file"):
        load(path, "livebench")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="byte 0 is not UTF-8"):
        load(path, "livebench")
    path.write_text(json.dumps(livebench_question()) + "\n\n{broken\n")
    with pytest.raises(FormatError, match=r"question.jsonl:3: not JSON"):
        load(path, "livebench")
    path.write_text('{"question_id": NaN}\n' + "[" * 100_000)
    with pytest.raises(FormatError, match=r":1: not JSON: NaN is no JSON number\n.*:2: not JSON: nested too"):
        load(path, "livebench")
    path.write_text("\n")
    with pytest.raises(FormatError, match="holds no problem"):
        load(path, "livebench")


def test_packed_tests_have_one_limit_for_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record is small, and unpacks to a megabyte; also where records that are refused are left out."""
    monkeypatch.setattr(files, "MOST_MB", 3)
    large = json.dumps([{"input": "x" * (1 << 20), "output": "1", "testtype": "stdin"}])
    path = tmp_path / "question.jsonl"
    records = [
        {**livebench_question(), "question_id": f"q{k}", "private_test_cases": pack(large)} for k in range(6)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert path.stat().st_size < 1 << 17
    with pytest.raises(FileError, match=r"question\.jsonl: it holds more than 3 MB"):
        load(path, "livebench", skip=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records[:2]))
    assert len(load(path, "livebench")[0]) == 2


def test_the_same_question_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    path.write_text((json.dumps(livebench_question()) + "\n") * 2)
    with pytest.raises(FormatError, match=r":2: the same problem stands at .*:1"):
        load(path, "livebench")


@pytest.mark.parametrize("name", ["q1", 7])
def test_tests_in_files_of_their_own(tmp_path: Path, name: str | int) -> None:
    question = {**livebench_question(), "question_id": name}
    tests = {k: question.pop(k) for k in ("public_test_cases", "private_test_cases")}
    (tmp_path / "question.jsonl").write_text(json.dumps(question))
    (tmp_path / "test_cases_0.jsonl").write_text(json.dumps({"question_id": name, **tests}))
    problems, _ = load(tmp_path / "question.jsonl", "livebench")
    assert problems == [read("livebench", {**livebench_question(), "question_id": name})]
    (tmp_path / "test_cases_1.jsonl").write_text('{"question": "q1"}')
    with pytest.raises(FormatError, match=r"test_cases_1.jsonl:1.question_id: missing"):
        load(tmp_path / "question.jsonl", "livebench")


@pytest.mark.parametrize("form", FORMATS)
def test_files_round_trip(form: str, tmp_path: Path) -> None:
    problem = read(form, SAMPLES[form]())
    save(tmp_path / "a" / "f.json", form, [problem])
    assert load(tmp_path / "a" / "f.json", form) == ([problem], [])


def test_what_a_format_cannot_hold_is_refused() -> None:
    functional = read("livecodebench", livecodebench_problem())
    with pytest.raises(FormatError, match="CodeContests tests whole programs"):
        FORMATS["codecontests"].write(functional)
    with pytest.raises(FormatError, match="tests whole programs"):
        FORMATS["reference"].write(functional)
    with pytest.raises(FormatError, match="knows 'lines', not 'tokens'"):
        FORMATS["livebench"].write(read("codecontests", codecontests_row()))
    with pytest.raises(FormatError, match="needs a name"):
        FORMATS["codecontests"].write(read("reference", reference_item()))
    assert read("livebench", FORMATS["livebench"].write(functional)).cases == functional.cases
    shared = read("reference", FORMATS["reference"].write(read("codecontests", codecontests_row())))
    assert len(shared.cases) == 4


def test_release_and_removal_dates() -> None:
    problem = read("livebench", livebench_question(livebench_removal_date="2024-11-25"))
    assert problem.source["released"] == "2024-06-24"
    days = [date(2024, 5, 1), date(2024, 6, 24), date(2024, 8, 31), date(2024, 11, 25)]
    assert [in_release(problem, day) for day in days] == [False, True, True, False]
    assert in_release(read("livebench", livebench_question()), date(2026, 6, 25))


@given(released=st.dates(), removed=st.none() | st.dates(), asked=st.dates(), clock=st.none() | st.times())
def test_dates_are_compared_as_days(
    released: date, removed: date | None, asked: date, clock: time | None
) -> None:
    """Also where a file has them with a time, as some readers of LiveBench's tables write them."""
    texts = [
        "" if d is None else str(datetime.combine(d, clock) if clock else d) for d in (released, removed)
    ]
    question = livebench_question(livebench_release_date=texts[0], livebench_removal_date=texts[1])
    belongs = released <= asked and (removed is None or removed > asked)
    assert in_release(read("livebench", question), asked) is belongs


def test_a_question_for_the_real_grader_holds_no_blob() -> None:
    question = write(read("livebench", livebench_question()))
    assert json.loads(question["private_test_cases"]) == [stdin_case("5 5\n", "10\n")]
