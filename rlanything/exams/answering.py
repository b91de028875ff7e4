"""Sampling a policy's answers to the questions of an exam. The exam stores the answers in its own files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.config import Checkpoint, Config
from rlanything.core.errors import ConfigError
from rlanything.core.exams import Answers, Exam, Question
from rlanything.core.ids import content_id
from rlanything.core.printable import safe
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Json, Request
from rlanything.engines import sources
from rlanything.files import locks
from rlanything.files.hashes import tree_hash
from rlanything.runs import build
from rlanything.runs.layout import Layout, LoraCheckpoint
from rlanything.runs.progress.ticker import Ticker
from rlanything.runs.resuming.began import check_began
from rlanything.stages import BEFORE_TRAINING, EXAM, TRAIN, of_arm
from rlanything.stages.evaluate import policy_of

if TYPE_CHECKING:
    from rlanything.loop.chat_model import ChatModel
    from rlanything.loop.prompts import Prompts

AT_A_TIME = 16
"""Questions in a batch. The answers of a batch are on disk before the next batch is sampled."""


def answer_exam(
    exam: Exam,
    config: Config,
    root: Path,
    arm: str,
    seed: int,
    *,
    questions: Sequence[Path],
    release: date | None,
    model: str,
    data: Path,
) -> int:
    """Sample an answer to each question that `model` has not answered yet. Returns how many could not be answered.

    release: the release of the exam whose questions are asked; None: all questions that were not removed.
    model: the name under which the answers are stored. data: the folder of the answers.
    Raises `ConfigError` for a negative seed, for an arm that is unknown or not trained, and for one whose runs began
    from other training tasks or base models than there are now. Raises `UserError` for files of the exam that cannot be
    used.
    """
    if seed < 0:
        raise ConfigError(f"--seed {seed}: must be at least 0")
    checkpoint = policy_of(config, Layout(root), arm, seed)
    asked = exam.questions(questions, release)
    exam.answers(data, model, {})  # refuses a name before a lock is called by it
    apart = (*BEFORE_TRAINING, of_arm(TRAIN, arm))
    with locks.stage(root, f"{EXAM} answer --model {model}", data, apart=apart):
        # The answers are compared with those of the base of now, beside which LoRA's weights would be put too.
        check_began(config, root, arm)
        answers = exam.answers(data, model, made_with(config, root, checkpoint, seed))
        todo = answers.missing(asked)
        lost = _answer(config, root, checkpoint, seed, todo, answers) if todo else []
    print(
        f"{model}: {len(asked) - len(lost)} of {len(asked)} questions answered, {len(asked) - len(todo)} of them before"
    )
    for line in lost:
        print(safe(f"no answer: {line}"), file=sys.stderr)
    return len(lost)


SIZES = (
    *("max_batch", "cache_gib", "max_batched_tokens", "prefix_caching", "eager", "tolerance"),
    *("replicas", "addresses", "folder", "start_s", "request_s", "restarts"),
)
"""Arguments of engines that change no answer."""


def made_with(config: Config, root: Path, checkpoint: Checkpoint, seed: int) -> dict[str, Json]:
    """What the answers depend on. It is stored with them."""
    return {
        "policy": _named(checkpoint, root),
        "prompts": tree_hash(root / config.model.prompts),
        "context": config.model.context,
        "seeds": [config.seed, seed],
        "temperature": config.evaluate.temperature,
        "max_tokens": config.rollout.max_tokens,
        "precision": config.precision("policy"),
        "engine": {k: v for k, v in config.engine.items() if k not in SIZES},
    }


def _named(checkpoint: Checkpoint, root: Path) -> Json:
    """A local model by its content, one of a hub by its name and commit, one that LoRA trained by both of its parts."""
    if isinstance(checkpoint, LoraCheckpoint):
        lora = Checkpoint(path=checkpoint.lora)
        return {"base": _named(checkpoint.base, root), "lora": _named(lora, root)}
    found = sources.contents(checkpoint, root)
    if sources.is_local(checkpoint, root):
        return content_id(found)
    return f"{checkpoint.path}@{found.get(sources.COMMIT, checkpoint.revision)}"


def _answer(
    config: Config, root: Path, checkpoint: Checkpoint, seed: int, todo: Sequence[Question], answers: Answers
) -> list[str]:
    """Sample and keep an answer to each question; a message for each that does not fit the policy's context."""
    from rlanything.engines.placement import Role

    build.one_thread()
    with build.chat_model(config, *build.load(config, checkpoint, root, Role.FROZEN, "policy")) as policy:
        return _ask(config, policy, build.prompts(config, root), seed, todo, answers)


def _ask(
    config: Config, policy: ChatModel, prompts: Prompts, seed: int, todo: Sequence[Question], answers: Answers
) -> list[str]:
    """`_answer` with a policy that is open."""
    ticker = Ticker("livebench answer", len(todo))
    lost: list[str] = []
    for first in range(0, len(todo), AT_A_TIME):
        group = todo[first : first + AT_A_TIME]
        requests = [_request(config, policy, prompts, seed, question) for question in group]
        fits = [len(r.prompt_ids) + r.max_tokens <= policy.max_context for r in requests]
        lost += [
            _too_long(question, request, policy)
            for question, request, fit in zip(group, requests, fits, strict=True)
            if not fit
        ]
        sampled = policy.generate([request for request, fit in zip(requests, fits, strict=True) if fit])
        fitting = (question for question, fit in zip(group, fits, strict=True) if fit)
        for question, completion in zip(fitting, sampled, strict=True):
            answers.keep(question, policy.decode(completion.ids), len(completion.ids))
        ticker.tick(first + len(group))
    return lost


def _request(config: Config, policy: ChatModel, prompts: Prompts, seed: int, question: Question) -> Request:
    """The request for an answer. Its seed depends on the run and the question, not on the order of the questions."""
    return Request(
        prompt_ids=policy.start(prompts.opening(question.text, ())),
        seed=derive_seed(config.seed, "livebench", seed, question.question_id),
        max_tokens=config.rollout.max_tokens,
        temperature=config.evaluate.temperature,
    )


def _too_long(question: Question, request: Request, policy: ChatModel) -> str:
    return (
        f"{question.question_id}: its prompt has {len(request.prompt_ids)} tokens; with {request.max_tokens} for the "
        f"answer that is more than the {policy.max_context} of the policy's context"
    )
