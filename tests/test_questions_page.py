"""The questions of docs/environments.md: the files that the page shows make an environment, and it trains."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from copied_project import copy_project, python

from rlanything.core.protocols import Environment, Teacher
from rlanything.core.types import InvalidProposal
from rlanything.loop.prompts import Prompts

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "environments.md").read_text().partition("\n## A file of questions\n")[2]
CODE, ENV, SETTING, COMMANDS = re.findall(
    r"```(?:python|yaml|bash)\n(.*?)```", PAGE.partition("\n## ")[0], flags=re.DOTALL
)
CHECKPOINT = "/models/Qwen2.5-0.5B-Instruct"
FEW = [
    *("tasks.train=3", "rollout.tasks=1", "rollout.rollouts=2", "rollout.max_tokens=12", "judge.max_tokens=12"),
    *("tasks.panels.in_domain.tasks=1", "tasks.panels.reward_panel.tasks=1", "judge.max_invalid=1"),
    *("train.iterations=1", "train.accelerator=cpu", "train.precision=32-true", "evaluate.reward_rollouts=1"),
    *("evaluate.every=1", "evaluate.curve_tasks=1", "evaluate.curve_rollouts=1"),
]  # fmt: skip
"""As small as it goes: what is tested is that the chain holds."""


def questions(folder: Path, count: int = 6) -> dict[str, str]:
    """Two files of questions in `folder`: split -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, term in (("train", 1), ("test", 100)):
        lines = [json.dumps({"question": f"What is {term} + {k}?", "answer": term + k}) for k in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return {"train": str(folder / "train.jsonl"), "in_domain": str(folder / "test.jsonl")}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> ModuleType:
    """The module that the page shows."""
    file = tmp_path_factory.mktemp("page") / "questions.py"
    file.write_text(CODE)
    spec = importlib.util.spec_from_file_location("questions", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tasks_are_questions_of_the_file_and_the_same_for_the_same_seed(page, tmp_path):
    family = page.Questions(questions(tmp_path))
    made = family.make("train", 4, seed=1)
    assert made == family.make("train", 4, seed=1) != family.make("train", 4, seed=2)
    assert len({task.task_id for task in made}) == 4
    assert [family.validate(task) for task in made] == [""] * 4
    assert family.splits() == ("train", "in_domain")
    assert not isinstance(family, Teacher)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        (r"Two and one. \boxed{3}", True),
        (r"\boxed{2}, no: \boxed{ 3 }", True),
        (r"\boxed{3}, no: \boxed{2}", False),
        ("3", False),
        ("", False),
    ],
)
def test_the_last_box_is_the_answer_and_the_observation_does_not_tell(page, tmp_path, reply, right):
    family = page.Questions(questions(tmp_path))
    (task,) = [task for task in family.make("train", 6, 0) if task.payload["answer"] == "3"]
    episode = family.environment()
    assert isinstance(episode, Environment)
    assert episode.reset(task, 0).text == "What is 1 + 2?"
    result = episode.step(reply)
    assert (result.done, result.success) == (True, right)
    assert result.observation.text == episode.step("").observation.text
    episode.close()


def test_what_cannot_be_is_refused_by_name(page, tmp_path):
    files = questions(tmp_path)
    with pytest.raises(ValueError, match=r"files\.train: .*nowhere\.jsonl: no such file"):
        page.Questions({**files, "train": str(tmp_path / "nowhere.jsonl")})
    family = page.Questions(files)
    with pytest.raises(ValueError, match=r"train\.jsonl has 6 questions"):
        family.make("train", 7, 0)
    (task, *_) = family.make("train", 6, 0)
    with pytest.raises(InvalidProposal, match="nobody knows"):
        family.parse(task, family.describe(task))
    Path(files["train"]).write_text('{"question": "What is 1 + 1?"}\n')
    with pytest.raises(ValueError, match=r"train\.jsonl:1: a line needs `question` and `answer`"):
        family.make("train", 1, 0)


def test_the_models_are_shown_the_question_and_the_judge_the_whole_answer():
    prompts = Prompts.load(ROOT / "experiments" / "prompts" / "questions", "verbatim", "boxed", "chat")
    *_, turn = prompts.opening("What is 1 + 2?", ())
    assert turn["content"].strip() == "What is 1 + 2?"
    reply = r"One more than two. \boxed{3}"
    assert prompts.action(reply, ()) == (reply, True)
    assert reply in prompts.judge_question("Your answer was noted.", reply)["content"]


@pytest.mark.long
@pytest.mark.integration
def test_the_files_of_the_page_train(tmp_path):
    from rlanything.engines import checkpoint
    from rlanything.rehearsal.architectures import architecture

    made, own, root = architecture("qwen2"), tmp_path / "own", tmp_path / "project"
    tokenizer = made.tokenizer([r"What is 1 + 2? The sum is \boxed{3}, the verdict \boxed{-1}"] * 40)
    checkpoint.save(made.fresh(tokenizer, 0), tokenizer, own)
    copy_project(root)
    questions(tmp_path / "questions")
    (root / "envs" / "questions.py").write_text(CODE)
    (root / "experiments/env/questions.yaml").write_text(
        ENV.replace("/data/questions", str(tmp_path / "questions"))
    )
    (root / "experiments/setting/questions-local.yaml").write_text(SETTING)
    for line in COMMANDS.splitlines():
        words = shlex.split(line, comments=True)[1:]
        python(root, "-m", "rlanything", *(word.replace(CHECKPOINT, str(own)) for word in words), *FEW)
    (metrics,) = root.glob(".rla/trial-*/runs/policy/seed-0/metrics.jsonl")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1]
    assert rows[0]["status/ok"] == 2
    assert rows[0]["status/env_error"] == 0
    trial = metrics.parents[3]
    (seed,) = json.loads((trial / "evaluation" / "policy.json").read_text())["seeds"].values()
    assert list(seed["labels"]) == ["strong"]
    python(root, "-m", "rlanything", "--workspace", trial.name, "rollouts", "show", "policy")
