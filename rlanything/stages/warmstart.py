"""Warm starts of the embedded models, trained on the spot from what the environment's teacher shows.

Policy: supervised on an expert's noisy demonstrations. Reward model: `lessons`. Adapter: on rewrites that the teacher
makes, in a process of its own beside the other two.

A model that is finished is kept: who starts again after a kill only makes those that are missing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rlanything.config import Architecture, Config, SupervisedConfig, parse
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, Task, TaskFamily, Teacher
from rlanything.engines import checkpoint
from rlanything.learn.packing import Row
from rlanything.learn.supervised import Turn, conversation_row, fit, fresh_model
from rlanything.loop.prompts import Prompts
from rlanything.loop.speaker import Speaker
from rlanything.stages import build, disk
from rlanything.stages.layout import SPLITS, Layout, read_tasks
from rlanything.stages.lessons import Demonstration, Lessons, lessons
from rlanything.stages.progress import Ticker
from rlanything.stages.tokenizer import train_tokenizer
from rlanything.stages.workers import pool

CORPUS_DEMOS = 1000
"""Demonstrations that the tokenizer is learned from; more find no further phrases."""
CORPUS_REWRITES = 40
"""Tasks whose rewrites the tokenizer sees; making one takes the teacher tens of milliseconds."""


def train(config: Config, root: Path, work: Path) -> None:
    """Write three checkpoints into `work`: policy, reward, adapter; those that are there already stay.

    Raises `ConfigError` when the family has no teacher.
    """
    family = build.family(config)
    teacher, prompts = build.teacher(family), build.prompts(config, root)
    taught = lessons(config, family, prompts)
    tasks = _practice(config, root, family)
    demos = _demonstrations(config, teacher, tasks[: config.bootstrap.policy.episodes])
    tokenizer = _tokenizer(config, family, prompts, taught, tasks, demos)
    with disk.whole(work / "tokenizer") as folder:
        tokenizer.save_pretrained(str(folder))
    with pool(1) as executor:
        adapter = executor.submit(train_adapter, config.model_dump(by_alias=True), root, work)
        policy = _kept(work / "policy", tokenizer, lambda: _policy(config, tokenizer, prompts, demos))
        talk = build.speaker(config, policy, tokenizer)
        practice = tasks[-config.bootstrap.reward.episodes :]
        _kept(
            work / "reward",
            tokenizer,
            lambda: _reward(config, taught, talk, tokenizer, practice),
        )
        adapter.result()


def train_adapter(data: dict[str, object], root: Path, work: Path) -> None:
    """The adapter, in a process of its own; its tokenizer is there already."""
    build.one_thread()
    tokenizer = AutoTokenizer.from_pretrained(str(work / "tokenizer"))
    _kept(work / "adapter", tokenizer, lambda: _adapter(parse(data), root, tokenizer))


def _kept(
    place: Path, tokenizer: PreTrainedTokenizerBase, make: Callable[[], PreTrainedModel]
) -> PreTrainedModel:
    """The finished model that is in `place`, or one that is made now and put there, whole."""
    if place.is_dir():
        return checkpoint.load(place)[0]
    model = make()
    with disk.whole(place) as folder:
        checkpoint.save(model, tokenizer, folder)
    return model


def _adapter(config: Config, root: Path, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    family, prompts = build.family(config), build.prompts(config, root)
    settings = config.bootstrap.adapter
    tasks = _practice(config, root, family)[: settings.episodes]
    rewrites = _rewrites(config, family, prompts, lessons(config, family, prompts), tasks)
    model = _new(config, tokenizer, "adapter")
    talk = build.speaker(config, model, tokenizer)
    rows = [_reply_row(talk, *pair, settings.context_weight) for pair in rewrites]
    _fit(model, rows, settings, config.seed, "adapter")
    return model


def _policy(
    config: Config,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Prompts,
    demos: Sequence[Demonstration],
) -> PreTrainedModel:
    settings = config.bootstrap.policy
    model = _new(config, tokenizer, "policy")
    talk = build.speaker(config, model, tokenizer)
    rows = [_demo_row(talk, prompts, demo, settings.context_weight) for demo in demos]
    _fit(model, rows, settings, config.seed, "policy")
    return model


def _reward(
    config: Config,
    taught: Lessons,
    policy: Speaker,
    tokenizer: PreTrainedTokenizerBase,
    tasks: Sequence[Task],
) -> PreTrainedModel:
    model = _new(config, tokenizer, "reward")
    _fit(model, taught.rows(policy, tasks), config.bootstrap.reward, config.seed, "reward")
    return model


def _tokenizer(
    config: Config,
    family: TaskFamily,
    prompts: Prompts,
    taught: Lessons,
    tasks: Sequence[Task],
    demos: Sequence[Demonstration],
) -> PreTrainedTokenizerBase:
    """Learned from what the three models will read and write."""
    shown = demos[:CORPUS_DEMOS]
    texts = [text for demo in shown for obs, action in demo for text in (obs.text, action)]
    rewrites = _rewrites(config, family, prompts, taught, tasks[:CORPUS_REWRITES])
    texts += [text for pair in rewrites for text in pair]
    return train_tokenizer(texts + taught.corpus(tasks, shown), _architecture(config).vocab)


def _practice(config: Config, root: Path, family: TaskFamily) -> list[Task]:
    """Tasks to learn the base models on: of the training distribution, and none that any split holds."""
    settings = config.bootstrap
    count = max(settings.policy.episodes, settings.reward.episodes, settings.adapter.episodes)
    held = {t.task_id for split in SPLITS for t in read_tasks(Layout(root).tasks(split))}
    made = build.make(family, "train", count + len(held), derive_seed(config.seed, "bootstrap", "tasks"))
    return [task for task in made if task.task_id not in held][:count]


def _demonstrations(config: Config, teacher: Teacher, tasks: Sequence[Task]) -> list[Demonstration]:
    noise = config.bootstrap.policy.noise
    limit = config.rollout.max_steps
    return [
        teacher.demonstrate(task, derive_seed(config.seed, "demonstrate", task.task_id), noise)[:limit]
        for task in tasks
    ]


def _rewrites(
    config: Config, family: TaskFamily, prompts: Prompts, taught: Lessons, tasks: Sequence[Task]
) -> list[tuple[str, str]]:
    """(prompt, reply) pairs for the adapter: both directions of every task, with plausible accuracies and critics."""
    pairs = []
    teacher = build.teacher(family)
    for task in tasks:
        for way, rates in ((Direction.HARDER, (0.875, 1.0)), (Direction.EASIER, (0.0, 0.125))):
            seed = derive_seed(config.seed, "rewrite", task.task_id, way.value)
            facts, acc = family.describe(task), f"{random.Random(seed).choice(rates):.0%}"
            critic = taught.critic(task, seed)
            text = prompts.fill("adapter", facts=facts, direction=way.value, accuracy=acc, critic=critic)
            pairs.append((text, teacher.rewrite(task, way, seed)))
    return pairs


def _demo_row(talk: Speaker, prompts: Prompts, demo: Demonstration, context_weight: float) -> Row:
    """A demonstration as one row; also when decoding is constrained, the model learns to spell whole commands."""

    first, _ = demo[0]
    prompt = talk.start(prompts.opening(first.text, first.actions))
    turns = []
    for k, (_, action) in enumerate(demo):
        response = talk.encode_choice(action)
        turns.append(Turn(prompt, response))
        if k + 1 < len(demo):
            following = demo[k + 1][0]
            prompt = talk.extend(prompt, response, prompts.turn(following.text, following.actions))
    return conversation_row(turns, context_weight)


def _reply_row(talk: Speaker, prompt: str, reply: str, context_weight: float) -> Row:

    turn = Turn(talk.start([{"role": "user", "content": prompt}]), talk.encode_choice(reply))
    return conversation_row([turn], context_weight)


def _new(config: Config, tokenizer: PreTrainedTokenizerBase, name: str) -> PreTrainedModel:

    seed = derive_seed(config.seed, "initialise", name)
    return fresh_model(
        _architecture(config), len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id, seed % 2**31
    )


def _fit(
    model: PreTrainedModel, rows: Sequence[Row], settings: SupervisedConfig, seed: int, name: str
) -> None:

    ticker = Ticker(f"bootstrap: {name}", settings.steps)
    fit(
        model,
        rows,
        settings,
        derive_seed(seed, "fit", name),
        lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}"),
    )


def _architecture(config: Config) -> Architecture:
    if config.model.embedded is None:
        raise ValueError("only embedded models are made from nothing")
    return config.model.embedded
