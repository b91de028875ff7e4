"""Warm starts of the embedded models: supervised training on data of the environment's teacher.

The policy learns from an expert's noisy demonstrations. The reward model learns from the data of its kind (`rewards`).
The adapter learns from the teacher's rewrites.

With `train.workers` above 1, another process computes half of each gradient of the policy and of the reward model. The
adapter is trained in a process of its own while the lessons of the reward model are made, which are rollouts of the
policy where it votes. One process gives the same bytes.

A finished model is kept. A start after a kill only trains the missing models.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rlanything.config import Architecture, Config, SupervisedConfig, parse
from rlanything.core.errors import ConfigError
from rlanything.core.printable import one_line, say
from rlanything.core.protocols import TaskFamily, Teacher
from rlanything.core.returned.answers import require
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, InvalidProposal, Step, Task
from rlanything.engines import checkpoint
from rlanything.engines.untrusted_load import NO_CODE
from rlanything.files import atomic
from rlanything.learn.packing import Row
from rlanything.learn.supervised.fit import fit
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.learn.supervised.gradient import Gradient, in_halves, whole
from rlanything.learn.supervised.rows import Turn, conversation_rows
from rlanything.loop.adapt import described, invalid_where_it_raises
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.contexts import next_prompt
from rlanything.loop.prompts import Prompts
from rlanything.rewards.kind import kind_of
from rlanything.rewards.protocols import Demonstration, WarmStart
from rlanything.rewards.requirements import demonstration, teacher
from rlanything.runs import build, families
from rlanything.runs.progress.ticker import Ticker
from rlanything.runs.workers import begin_starter, beside
from rlanything.stages.bootstrap.sharing import shared
from rlanything.stages.bootstrap.tokenizer import train_tokenizer

CORPUS_DEMOS = 1000
"""Number of demonstrations that the tokenizer is trained on. More of them add no phrases."""
CORPUS_REWRITES = 40
"""Number of tasks whose rewrites the tokenizer is trained on. The teacher needs tens of milliseconds for a rewrite."""

NO_REWRITE = "Larger rooms, or another `env.edit` where there is one, leave more to change"
"""What to do where a teacher finds nothing to rewrite."""


def train(config: Config, root: Path, work: Path) -> None:
    """Write three checkpoints into `work`: policy, reward, adapter. Existing ones are kept.

    Raises `ConfigError` when the family has no teacher.
    """
    workers, call = config.train.workers, (config.model_dump(by_alias=True), root, work)
    if workers > 1:
        begin_starter()  # which imports while the lessons are made
    family = build.family(config)
    prompts = build.prompts(config, root)
    taught = kind_of(config).warm_start(config, family, prompts)
    tasks = families.practice_tasks(config, root, family)
    demos = _demonstrations(config, teacher(family), tasks[: config.bootstrap.policy.episodes])
    tokenizer = _tokenizer(config, family, prompts, taught, tasks, demos)
    with atomic.whole(work / "tokenizer") as folder:
        tokenizer.save_pretrained(str(folder))
    with ExitStack() as stack:
        gradient = partial(in_halves, begin=stack.enter_context(shared(workers)))
        policy = _kept(
            work / "policy", tokenizer, lambda: _policy(config, tokenizer, prompts, demos, gradient)
        )
        adapter = stack.enter_context(beside(train_adapter, *call)) if workers > 1 else None
        practice = tasks[-config.bootstrap.reward.episodes :]
        chat_model = stack.enter_context(build.chat_model(config, policy, tokenizer))

        def reward() -> PreTrainedModel:
            rows = taught.rows(chat_model, practice)
            if adapter is not None:
                adapter.result()  # so that no more than two processes are busy
            return _reward(config, tokenizer, rows, gradient)

        _kept(work / "reward", tokenizer, reward)
        if adapter is not None:
            adapter.result()
        else:
            train_adapter(*call)


def train_adapter(data: dict[str, object], root: Path, work: Path) -> None:
    """Train the adapter, in a process of its own or in this one, after the tokenizer was written."""
    build.one_thread()
    tokenizer = AutoTokenizer.from_pretrained(str(work / "tokenizer"), **NO_CODE)
    _kept(work / "adapter", tokenizer, lambda: _adapter(parse(data), root, tokenizer))


def _kept(
    place: Path, tokenizer: PreTrainedTokenizerBase, make: Callable[[], PreTrainedModel]
) -> PreTrainedModel:
    """The model in `place`. If there is none, `make` makes it and it is written there with one rename."""
    if place.is_dir():
        return checkpoint.load(place)[0]
    model = make()
    with atomic.whole(place) as folder:
        checkpoint.save(model, tokenizer, folder)
    return model


def _adapter(config: Config, root: Path, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    family, prompts = build.family(config), build.prompts(config, root)
    settings = config.bootstrap.adapter
    tasks = families.practice_tasks(config, root, family)[: settings.episodes]
    pairs = _rewrites(
        config, family, prompts, kind_of(config).warm_start(config, family, prompts), tasks, "adapter"
    )
    model = _new(config, tokenizer, "adapter")
    with build.chat_model(config, model, tokenizer) as chat_model:
        examples = [reply_rows(chat_model, *pair, settings.context_weight) for pair in pairs]
    _fit(model, examples, settings, config.seed, "adapter", whole)
    return model


def _policy(
    config: Config,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Prompts,
    demos: Sequence[Demonstration],
    gradient: Gradient,
) -> PreTrainedModel:
    settings = config.bootstrap.policy
    model = _new(config, tokenizer, "policy")
    with build.chat_model(config, model, tokenizer) as chat_model:
        examples = [demonstration_rows(chat_model, prompts, demo, settings.context_weight) for demo in demos]
    _fit(model, examples, settings, config.seed, "policy", gradient)
    return model


def _reward(
    config: Config,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    gradient: Gradient,
) -> PreTrainedModel:
    model = _new(config, tokenizer, "reward")
    _fit(model, [[row] for row in rows], config.bootstrap.reward, config.seed, "reward", gradient)
    return model


def _tokenizer(
    config: Config,
    family: TaskFamily,
    prompts: Prompts,
    taught: WarmStart,
    tasks: Sequence[Task],
    demos: Sequence[Demonstration],
) -> PreTrainedTokenizerBase:
    """Train the tokenizer on texts like those that the three models read and write."""
    shown = demos[:CORPUS_DEMOS]
    texts = [text for demo in shown for obs, action in demo for text in (obs.text, action)]
    pairs = _rewrites(config, family, prompts, taught, tasks[:CORPUS_REWRITES], "tokenizer")
    texts += [text for pair in pairs for text in pair]
    return train_tokenizer(texts + taught.corpus(tasks, shown), _architecture(config).vocab)


def _demonstrations(config: Config, expert: Teacher, tasks: Sequence[Task]) -> list[Demonstration]:
    noise = config.bootstrap.policy.noise
    limit = config.rollout.max_steps
    return [
        demonstration(expert, task, derive_seed(config.seed, "demonstrate", task.task_id), noise)[:limit]
        for task in tasks
    ]


def _rewrites(
    config: Config, family: TaskFamily, prompts: Prompts, taught: WarmStart, tasks: Sequence[Task], whose: str
) -> list[tuple[str, str]]:
    """(prompt, reply) pairs for the adapter: each task in both directions, with invented accuracies and critics.

    A direction in which a task cannot be rewritten is left out. So is one in which the environment's code fails: how
    many these are is printed, with the first error. whose: what is taught with the pairs, for that line.
    Raises `ConfigError` when there is no pair.
    """
    pairs, failed = [], []
    rewriter, timeout_s = teacher(family), config.rollout.timeout_s
    for task in tasks:
        for way, rates in ((Direction.HARDER, (0.875, 1.0)), (Direction.EASIER, (0.0, 0.125))):
            seed = derive_seed(config.seed, "rewrite", task.task_id, way.value)
            try:
                reply = _rewritten(rewriter, task, way, seed, timeout_s)
                if reply is None:
                    continue
                facts = described(family, task, timeout_s)
            except InvalidProposal as error:
                failed.append(f"task {task.task_id[:12]} ({task.instruction!r}), {way.value}: {error}")
                continue
            critic, acc = taught.critic(task, seed), f"{random.Random(seed).choice(rates):.0%}"
            text = prompts.fill("adapter", facts=facts, direction=way.value, accuracy=acc, critic=critic)
            pairs.append((text, reply))
    name = type(family).__name__
    lost = (
        f"{name} failed in {len(failed)} of {2 * len(tasks)} rewrites. The first: {one_line(failed[0])}"
        if failed
        else ""
    )
    if not pairs:
        raise ConfigError(
            f"bootstrap: the teacher of {name} can rewrite none of {len(tasks)} tasks, so that the adapter has nothing "
            f"to learn from. {lost or NO_REWRITE}"
        )
    if lost:
        say(f"bootstrap: {whose}: {lost}. They are left out")
    return pairs


def _rewritten(rewriter: Teacher, task: Task, way: Direction, seed: int, timeout_s: float) -> str | None:
    """The teacher's rewrite; None where it has none. Raises `InvalidProposal` where its code fails."""
    with invalid_where_it_raises("rewrite", timeout_s):
        try:
            reply = rewriter.rewrite(task.copy(), way, seed)
        except InvalidProposal:
            return None
        require(reply, str, "rewrite(task, direction, seed)")
        reply.encode()  # no tokenizer has an id for half a surrogate pair
    return reply


def demonstration_rows(
    chat_model: ChatModel, prompts: Prompts, demo: Demonstration, context_weight: float
) -> list[Row]:
    """A demonstration as training rows. Every token of a command is a target, even if decoding is constrained later."""
    results = [*(seen.text for seen, _ in demo[1:]), ""]
    steps: list[Step] = []
    for (now, action), result in zip(demo, results, strict=True):
        prompt = next_prompt(chat_model, prompts, demo[0][0].text, steps, now)
        response = chat_model.encode_choice(prompts.reply(action, now.actions))
        steps.append(Step(prompt.ids, response, (), (), action, True, result))
    return conversation_rows([Turn(step.prompt_ids, step.response_ids) for step in steps], context_weight)


def reply_rows(chat_model: ChatModel, prompt: str, reply: str, context_weight: float) -> list[Row]:
    """The training rows of one prompt and its reply."""
    turn = Turn(chat_model.start([{"role": "user", "content": prompt}]), chat_model.encode_choice(reply))
    return conversation_rows([turn], context_weight)


def _new(config: Config, tokenizer: PreTrainedTokenizerBase, name: str) -> PreTrainedModel:
    seed = derive_seed(config.seed, "initialise", name)
    return fresh_model(
        _architecture(config), len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id, seed % 2**31
    )


def _fit(
    model: PreTrainedModel,
    examples: Sequence[Sequence[Row]],
    settings: SupervisedConfig,
    seed: int,
    name: str,
    gradient: Gradient,
) -> None:
    ticker = Ticker(f"bootstrap: {name}", settings.steps)
    fit(
        model,
        examples,
        settings,
        derive_seed(seed, "fit", name),
        lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}"),
        gradient,
    )


def _architecture(config: Config) -> Architecture:
    if config.model.embedded is None:
        raise ValueError("only embedded models are made from nothing")
    return config.model.embedded
