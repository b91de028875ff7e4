"""`rlanything livebench answer`: a tiny policy answers hand-made questions; the answers are graded in the sandbox."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from stage_cases import ROOT, small, small_coding
from transformers import Qwen2Config, Qwen2ForCausalLM

from envs.coding.formats.files import save
from envs.coding.livebench.answers import questions_of
from envs.coding.livebench.judgments import read_answers
from envs.coding.problem import Case, Comparison, Problem
from envs.coding.sandbox import SandboxError, open_sandbox
from rlanything.cli import main
from rlanything.files import locks
from rlanything.loop.chat_model import ChatModel
from rlanything.runs import provenance
from rlanything.runs.fingerprint import made_from
from rlanything.runs.layout import Layout
from rlanything.stages import tasks
from rlanything.stages.bootstrap.tokenizer import train_tokenizer

pytestmark = pytest.mark.integration
INTERRUPTED = 130
STATEMENT = "Read a number. Change its sign. Print the result."
TASK = "live_bench/coding/LCB_generation"


def question(
    name: str, statement: str = STATEMENT, released: str = "2024-06-24", removed: str = ""
) -> Problem:
    source = {
        "format": "livebench",
        "id": name,
        "task": "LCB_generation",
        "released": released,
        "removed": removed,
    }
    cases = (Case("3\n", "-3\n"), Case("-8\n", "8\n"))
    record = {"original_json": {"metadata": "{}"}}
    return Problem(statement, cases, compare=Comparison.LINES, source={**source, "record": record})


QUESTIONS = [
    question("one"),
    question("two", "Read a number. Add 3. Print the result."),
    question("later", released="2024-08-31"),
    question("gone", removed="2024-08-31"),
    question("long", "Read a number. " + "Add 3. " * 5000),
]


def write_model(folder: Path, seed: int) -> None:
    """A tiny model that has learned nothing, with a tokenizer that has read one statement."""
    tokenizer = train_tokenizer([STATEMENT], 512)
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Qwen2Config(
        **sizes, num_key_value_heads=1, vocab_size=len(tokenizer), max_position_embeddings=1024
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A project with a base policy, another one as a run would leave it, and questions."""
    root = tmp_path_factory.mktemp("livebench")
    (root / "experiments").symlink_to(ROOT / "experiments")
    write_model(root / "models/policy", 0)
    write_model(root / "runs/full/seed-0/checkpoints/policy", 1)
    (root / "params.yaml").write_text(yaml.safe_dump(small_coding().model_dump(mode="json", by_alias=True)))
    save(root / "question.jsonl", "livebench", QUESTIONS)
    return root


@pytest.fixture
def data(tmp_path) -> Path:
    return tmp_path / "data"


def command(action: str, project: Path, data: Path, **options: str) -> int:
    words = ["--root", str(project), "livebench", action]
    given = {"questions": project / "question.jsonl", "model": "tiny", "data": data, **options}
    return main([*words, *(word for key, value in given.items() for word in (f"--{key}", str(value)))])


def answers(data: Path, model: str = "tiny") -> dict[str, str]:
    found = read_answers(data / TASK / "model_answer" / f"{model}.jsonl")
    return {name: answer.text for name, answer in found.items()}


@pytest.fixture
def sandboxed() -> None:
    try:
        open_sandbox(workers=1).close()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")


@pytest.mark.usefixtures("sandboxed")
def test_answers_are_sampled_and_graded(project, data, capsys):
    release = {"release": "2024-11-25"}
    assert command("answer", project, data, arm="full", **release) == 2
    printed = capsys.readouterr()
    assert "tiny: 3 of 4 questions answered, 0 of them before\n" in printed.out
    assert printed.err.count("no answer: ") == 1
    assert "no answer: long: its prompt has " in printed.err
    assert list(answers(data)) == ["one", "two", "later"]
    file = data / TASK / "model_answer/tiny.jsonl"
    grade = {"grader": "ours", "answers": str(file), "workers": "1", **release}
    assert command("grade", project, data, **grade) == 2
    assert "1 questions of release 2024-11-25 have no answer, the first 'long'" in capsys.readouterr().err
    words = ["--root", str(project), "livebench", "grade", "--ignore-missing-answers"]
    options = {"questions": project / "question.jsonl", "model": "tiny", "data": data, **grade}
    assert main([*words, *(word for k, v in options.items() for word in (f"--{k}", str(v)))]) == 0
    out = capsys.readouterr().out
    assert "of 100 (3 answers)" in out
    assert "without an answer, and in no score: long (1 in all)" in out


def test_an_answer_is_a_line_as_livebench_writes_it(project, data):
    assert command("answer", project, data, arm="base", release="2024-06-24") == 2
    rows = [json.loads(line) for line in (data / TASK / "model_answer/tiny.jsonl").read_text().splitlines()]
    assert [row["question_id"] for row in rows] == ["one", "two", "gone"]
    for row in rows:
        assert set(row) == {
            *("question_id", "answer_id", "model_id", "choices", "tstamp", "total_output_tokens")
        }
        assert row["choices"][0]["index"] == 0
        assert [type(turn) for turn in row["choices"][0]["turns"]] == [str]
        assert 1 <= row["total_output_tokens"] <= small_coding().rollout.max_tokens
    assert len({row["answer_id"] for row in rows}) == len(rows)
    made = json.loads((data / TASK / "model_answer/tiny.json").read_text())
    assert made["seeds"] == [small_coding().seed, 0]
    assert len(made["policy"]) == 64


def test_what_is_left_unanswered_by_a_kill_is_answered_and_the_rest_kept(
    project, data, monkeypatch: pytest.MonkeyPatch, capsys
):
    assert command("answer", project, data, arm="full", model="whole") == 2
    monkeypatch.setattr("rlanything.exams.answering.AT_A_TIME", 1)
    generate, calls = ChatModel.generate, []

    def die_at_the_second(self, requests):
        calls.append(len(requests))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return generate(self, requests)

    monkeypatch.setattr(ChatModel, "generate", die_at_the_second)
    assert command("answer", project, data, arm="full") == INTERRUPTED
    file = data / TASK / "model_answer/tiny.jsonl"
    assert list(answers(data)) == ["one"]
    with file.open("a") as torn:
        torn.write('{"question_id": "two", "cho')
    monkeypatch.setattr(ChatModel, "generate", generate)
    capsys.readouterr()
    assert command("answer", project, data, arm="full") == 2
    assert "tiny: 3 of 4 questions answered, 1 of them before" in capsys.readouterr().out
    assert answers(data) == answers(data, "whole")
    before = file.read_bytes()
    assert command("answer", project, data, arm="full") == 2
    assert file.read_bytes() == before


def test_a_question_that_has_changed_is_answered_again(project, data, tmp_path, capsys):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    save(first, "livebench", QUESTIONS[:2])
    save(second, "livebench", [QUESTIONS[0], question("two", "Read a number. Add 5. Print the result.")])
    assert command("answer", project, data, arm="full", questions=str(first)) == 0
    capsys.readouterr()
    for known in (1, 2):
        assert command("answer", project, data, arm="full", questions=str(second)) == 0
        assert f"tiny: 2 of 2 questions answered, {known} of them before" in capsys.readouterr().out
    lines = (data / TASK / "model_answer/tiny.jsonl").read_text().splitlines()
    assert [json.loads(line)["question_id"] for line in lines] == ["one", "two", "two"], "the last one counts"


def test_answers_of_two_policies_do_not_mix(project, data, capsys):
    assert command("answer", project, data, arm="full") == 2
    assert command("answer", project, data, arm="base") == 2
    assert "these answers were made with another policy (tiny.json)" in capsys.readouterr().err
    shutil.rmtree(data)
    (data / TASK / "model_answer").mkdir(parents=True)
    (data / TASK / "model_answer/tiny.jsonl").write_text("")
    assert command("answer", project, data, arm="full") == 2
    assert "other answers lie there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arm": "ful"}, "full"),
        ({"arm": "policy"}, "train first with `rlanything train --arm policy`"),
        ({"arm": "full", "seed": "7"}, "seed-7"),
        ({"arm": "full", "seed": "-1"}, "--seed -1: must be at least 0"),
        ({"arm": "full", "model": "../up"}, "--model '../up'"),
        ({"arm": "full", "release": "2020-01-01"}, "no question belongs to release 2020-01-01"),
        ({"arm": "full", "release": "2024-8-31"}, "--release '2024-8-31': must be a date as year-month-day"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_any_work(project, data, capsys, options, message):
    assert command("answer", project, data, **options) == 2
    assert message in capsys.readouterr().err
    assert not data.exists()


@pytest.mark.parametrize("late", [False, True], ids=["before", "while-it-starts"])
def test_a_policy_that_began_from_another_base_is_refused_and_the_base_is_not(
    late, project, data, tmp_path, capsys, monkeypatch
):
    root, config = tmp_path / "project", small_coding()
    shutil.copytree(project, root, symlinks=True)
    tasks.make_tasks(config, root)
    Layout(root).bootstrap.write_text("{}")
    provenance.write(config, root, "full", made_from(config, root, "full"), root)
    alone = locks.stage

    def other_base(*words, **more):
        """A bootstrap that ends just before the command has the project for itself."""
        write_model(root / "models/policy", 2)
        return alone(*words, **more)

    if late:
        monkeypatch.setattr(locks, "stage", other_base)
    else:
        write_model(root / "models/policy", 2)
    assert command("answer", root, data, arm="full", release="2024-06-24") == 2
    said = capsys.readouterr().err
    assert "runs/full: these runs began from other training tasks or base models" in said
    assert not data.exists()
    command("answer", root, data, arm="base", release="2024-06-24")
    assert len(answers(data)) == 3


def test_an_environment_without_questions_is_refused(project, data, tmp_path, capsys):
    text = yaml.safe_dump(small().model_dump(mode="json", by_alias=True))
    (tmp_path / "params.yaml").write_text(text)
    assert main(["--params", str(tmp_path / "params.yaml"), *command_words(project, data)]) == 2
    assert "LiveBench is for " in capsys.readouterr().err


def command_words(project: Path, data: Path) -> list[str]:
    """`answer` for the arm full."""
    words: dict[str, Any] = {
        "questions": project / "question.jsonl",
        "arm": "full",
        "model": "m",
        "data": data,
    }
    options = [word for key, value in words.items() for word in (f"--{key}", str(value))]
    return ["--root", str(project), "livebench", "answer", *options]


def test_a_question_is_asked_once(project):
    file = project / "question.jsonl"
    found = questions_of([file], None)
    assert [q.question_id for q in found] == ["one", "two", "later", "long"]
    assert found[0].text == STATEMENT
    with pytest.raises(ValueError, match="'one' stands in two of the files"):
        questions_of([file, file], None)
