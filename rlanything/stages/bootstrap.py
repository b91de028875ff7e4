"""Stage `bootstrap`: the base models. Embedded ones are trained here, on the spot; real ones are only recorded.

Policy: supervised on a searching expert's noisy demonstrations. Reward model: on the base policy's own rollouts with
noisy oracle labels, because one that has only seen an expert has never seen a useless action and approves of them.
Adapter: on rewrites that the environment's teacher makes. Last, the reward panel: the base policy's trajectories with
exact labels, and the check that the reward model starts above chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.config import Config, ConfigError, SupervisedConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.signals import mean_vote
from rlanything.core.theory import precision
from rlanything.core.types import (
    Direction,
    Judgement,
    Observation,
    ScoredJudgements,
    Task,
    TaskFamily,
    Teacher,
    Trajectory,
    Vote,
)
from rlanything.loop.adapt import summarise
from rlanything.loop.judge import Judge
from rlanything.loop.panel import (
    LabelledTrajectory,
    measure_policy,
    measure_reward,
    process_accuracy,
    success_rate,
)
from rlanything.loop.rollout import Assignment, Roller, Sampling
from rlanything.stages import build
from rlanything.stages.layout import SPLITS, Layout, read_tasks, write_json, write_lines
from rlanything.stages.progress import Ticker

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from rlanything.learn.packing import Row
    from rlanything.loop.prompts import Prompts
    from rlanything.loop.speaker import Speaker

Demonstration = list[tuple[Observation, str]]
VERDICTS = {"word": {True: "good", False: "bad"}, "boxed": {True: r"\boxed{1}", False: r"\boxed{-1}"}}


def run(config: Config, root: Path) -> None:
    """Write models/: three checkpoints (when embedded), the reward panel and bootstrap.json."""
    build.one_thread()
    family = build.family(config)
    layout = Layout(root)
    if config.model.embedded is not None:
        _train_all(config, root, family)
    policy_model, tokenizer = build.load(config.model.policy, root)
    reward_model, reward_tokenizer = build.load(config.model.reward, root)
    prompts = build.prompts(config, root)
    policy = build.speaker(config, policy_model, tokenizer)
    reward = build.speaker(config, reward_model, reward_tokenizer)
    roller = Roller(family, policy, prompts, config.rollout)
    judge = Judge(reward, prompts, config.judge)
    panel = label(family, read_tasks(layout.tasks("reward_panel")), roller, config)
    write_lines(layout.reward_panel, [item.to_json() for item in panel])
    report = _measure(config, layout, roller, judge, panel)
    write_json(layout.bootstrap, report)
    print("bootstrap: " + ", ".join(f"{k} {v:.3f}" for k, v in report.items() if isinstance(v, float)))
    if report["mu"] < config.bootstrap.min_mu:
        raise ConfigError(
            f"bootstrap: the first reward model has mu = {report['mu']:.3f}, below bootstrap.min_mu = "
            f"{config.bootstrap.min_mu}: its votes would mislead the policy. Raise bootstrap.reward.episodes or "
            "bootstrap.reward.steps, or lower bootstrap.reward.noise."
        )


def label(
    family: TaskFamily, tasks: Sequence[Task], roller: Roller, config: Config
) -> list[LabelledTrajectory]:
    """Rollouts of the policy on the reward panel's tasks, every step labelled by the family's oracle."""
    teacher = _teacher(family)
    sampling = Sampling(config.seed, "reward-panel", 0, config.rollout.temperature, config.rollout.max_steps)
    work = [Assignment(k, task, config.evaluate.reward_rollouts) for k, task in enumerate(tasks)]
    by_id = {task.task_id: task for task in tasks}
    kept = [t for t in roller.run(work, sampling) if t.counts and t.steps]
    return [
        LabelledTrajectory(t, tuple(teacher.label_steps(by_id[t.task_id], [s.action for s in t.steps])))
        for t in kept
    ]


def _measure(
    config: Config, layout: Layout, roller: Roller, judge: Judge, panel: Sequence[LabelledTrajectory]
) -> dict[str, float]:
    evaluate = config.evaluate
    settings = (config.seed, 1, evaluate.temperature, evaluate.max_steps)
    rates = {
        split: success_rate(measure_policy(roller, read_tasks(layout.tasks(split)), *settings))
        for split in ("in_domain", "out_of_domain")
    }
    judged = judge.run([item.trajectory for item in panel], config.seed, 0, phase="bootstrap-mu")
    votes = [
        (item.trajectory.outcome, v.verdict)
        for item, judgements in zip(panel, judged, strict=True)
        for j in judgements
        for v in j.votes
        if v.verdict is not None
    ]
    found = precision(votes)
    scores = measure_reward(judge, panel, config.seed)
    return {
        **rates,
        "panel_success": sum(i.trajectory.outcome == 1 for i in panel) / max(1, len(panel)),
        "p_plus": found.p_plus,
        "p_minus": found.p_minus,
        "mu": found.mu,
        "rm_process": process_accuracy(scores),
        "good_steps": mean_vote([1 if ok else -1 for i in panel for ok in i.labels]) / 2 + 0.5,
    }


def _train_all(config: Config, root: Path, family: TaskFamily) -> None:
    from rlanything.engines import checkpoint
    from rlanything.stages.tokenizer import train_tokenizer

    teacher = _teacher(family)
    prompts = build.prompts(config, root)
    tasks = _practice(config, root, family)
    settings = config.bootstrap
    demos = _demonstrations(config, teacher, tasks[: settings.policy.episodes])
    rewrites = _rewrites(config, family, teacher, prompts, tasks[: settings.adapter.episodes])
    tokenizer = train_tokenizer(
        _corpus(prompts, demos, rewrites, teacher, tasks), config.model.embedded.vocab
    )  # type: ignore[union-attr]
    policy = _new(config, tokenizer, "policy")
    talk = build.speaker(config, policy, tokenizer)
    _fit(
        policy,
        [_demo_row(talk, prompts, d, settings.policy.context_weight) for d in demos],
        settings.policy,
        config.seed,
        "policy",
    )
    talk.engine.sync()
    checkpoint.save(policy, tokenizer, root / config.model.policy.path)
    reward = _new(config, tokenizer, "reward")
    rows = _judged_rows(config, family, teacher, prompts, talk, tasks[-settings.reward.episodes :])
    _fit(reward, rows, settings.reward, config.seed, "reward")
    checkpoint.save(reward, tokenizer, root / config.model.reward.path)
    adapter = _new(config, tokenizer, "adapter")
    _fit(
        adapter,
        [_reply_row(talk, *pair, settings.adapter.context_weight) for pair in rewrites],
        settings.adapter,
        config.seed,
        "adapter",
    )
    checkpoint.save(adapter, tokenizer, root / config.model.adapter.path)


def _practice(config: Config, root: Path, family: TaskFamily) -> list[Task]:
    """Tasks to learn the base models on: of the training distribution, and none that any split holds."""
    settings = config.bootstrap
    count = max(settings.policy.episodes, settings.reward.episodes, settings.adapter.episodes)
    held = {t.task_id for split in SPLITS for t in read_tasks(Layout(root).tasks(split))}
    made = family.make("train", count + len(held), derive_seed(config.seed, "bootstrap", "tasks"))
    return [task for task in made if task.task_id not in held][:count]


def _demonstrations(config: Config, teacher: Teacher, tasks: Sequence[Task]) -> list[Demonstration]:
    noise = config.bootstrap.policy.noise
    limit = config.rollout.max_steps
    return [
        teacher.demonstrate(task, derive_seed(config.seed, "demonstrate", task.task_id), noise)[:limit]
        for task in tasks
    ]


def _rewrites(
    config: Config, family: TaskFamily, teacher: Teacher, prompts: Prompts, tasks: Sequence[Task]
) -> list[tuple[str, str]]:
    """(prompt, reply) pairs for the adapter: both directions of every task, with plausible accuracies and critics."""
    pairs = []
    for task in tasks:
        for way, rates in ((Direction.HARDER, (0.875, 1.0)), (Direction.EASIER, (0.0, 0.125))):
            seed = derive_seed(config.seed, "rewrite", task.task_id, way.value)
            rng = random.Random(seed)
            explored = [action for _, action in teacher.demonstrate(task, seed, 0.5)][:12]
            reasons = zip(teacher.label_steps(task, explored), teacher.explain(task, explored), strict=True)
            critic = summarise([("", reason) for good, reason in reasons if not good])
            facts, acc = family.describe(task), f"{rng.choice(rates):.0%}"
            text = prompts.fill("adapter", facts=facts, direction=way.value, accuracy=acc, critic=critic)
            pairs.append((text, teacher.rewrite(task, way, seed)))
    return pairs


def _corpus(
    prompts: Prompts,
    demos: Sequence[Demonstration],
    rewrites: Sequence[tuple[str, str]],
    teacher: Teacher,
    tasks: Sequence[Task],
) -> list[str]:
    """Everything that the three models will read or write."""
    texts = [text for demo in demos for obs, action in demo for text in (obs.text, action)]
    texts += [text for pair in rewrites for text in pair]
    for task, demo in zip(tasks, demos, strict=False):
        texts += [f"{r} {v}" for r in teacher.explain(task, [a for _, a in demo]) for v in ("good", "bad")]
    return texts + [
        prompts.fill("judge", observation=obs.text, action=a) for demo in demos for obs, a in demo[:1]
    ]


def _demo_row(talk: Speaker, prompts: Prompts, demo: Demonstration, context_weight: float) -> Row:
    """A demonstration as one row; also when decoding is constrained, the model learns to spell whole commands."""
    from rlanything.learn.supervised import Turn, conversation_row

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
    from rlanything.learn.supervised import Turn, conversation_row

    turn = Turn(talk.start([{"role": "user", "content": prompt}]), talk.encode_choice(reply))
    return conversation_row([turn], context_weight)


def _judged_rows(
    config: Config,
    family: TaskFamily,
    teacher: Teacher,
    prompts: Prompts,
    policy: Speaker,
    tasks: Sequence[Task],
) -> list[Row]:
    """One tree row per rollout of the base policy: each step's question with a (noisily) labelled answer."""
    from rlanything.learn.packing import reward_rows

    roller = Roller(family, policy, prompts, config.rollout)
    sampling = Sampling(
        config.seed, "judge-practice", 0, config.rollout.temperature, config.rollout.max_steps
    )
    trajectories = [
        t
        for t in roller.run([Assignment(k, task, 1) for k, task in enumerate(tasks)], sampling)
        if t.counts and t.steps
    ]
    labelled = [_labels(teacher, tasks[t.slot], t) for t in trajectories]
    pools = {kind: [r for steps in labelled for good, r in steps if good is kind] for kind in (True, False)}
    share = {kind: max(1, len(pool)) for kind, pool in pools.items()}
    judge = Judge(policy, prompts, config.judge)
    rows = []
    for trajectory, steps in zip(trajectories, labelled, strict=True):
        rng = random.Random(derive_seed(config.seed, "label-noise", trajectory.task_id, trajectory.rollout))
        answers = [_noisy(step, pools, config.bootstrap.reward.noise, rng) for step in steps]
        questions = judge.questions(trajectory)
        votes = [_answer(policy, prompts.verdict_format, *answer) for answer in answers]
        lesson = ScoredJudgements(
            tuple(Judgement(q, (v,)) for q, v in zip(questions, votes, strict=False)),
            tuple((1.0,) for _ in questions),
            tuple(1000.0 / share[good] for good, _ in answers[: len(questions)]),
        )
        rows += reward_rows(lesson, "step")
    return rows


def _labels(teacher: Teacher, task: Task, trajectory: Trajectory) -> list[tuple[bool, str]]:
    actions = [s.action for s in trajectory.steps]
    return list(zip(teacher.label_steps(task, actions), teacher.explain(task, actions), strict=True))


def _noisy(
    step: tuple[bool, str], pools: dict[bool, list[str]], noise: float, rng: random.Random
) -> tuple[bool, str]:
    """The label, or with probability `noise` the opposite one with a reason that goes with it."""
    good, _ = step
    if rng.random() >= noise or not pools[not good]:
        return step
    return not good, rng.choice(pools[not good])


def _answer(talk: Speaker, verdict_format: str, good: bool, reason: str) -> Vote:
    text = f"{reason} {VERDICTS[verdict_format][good]}"
    ids = talk.encode_choice(text)
    return Vote(1 if good else -1, reason, ids, (0.0,) * len(ids))


def _new(config: Config, tokenizer: PreTrainedTokenizerBase, name: str) -> PreTrainedModel:
    from rlanything.learn.supervised import fresh_model

    if config.model.embedded is None:
        raise ValueError("only embedded models are made from nothing")
    seed = derive_seed(config.seed, "initialise", name)
    return fresh_model(
        config.model.embedded, len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id, seed % 2**31
    )


def _fit(
    model: PreTrainedModel, rows: Sequence[Row], settings: SupervisedConfig, seed: int, name: str
) -> None:
    from rlanything.learn.supervised import fit

    ticker = Ticker(f"bootstrap: {name}", settings.steps)
    report: Callable[[int, int, float], None] = lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}")  # noqa: E731
    fit(model, rows, settings, derive_seed(seed, "fit", name), report)


def _teacher(family: TaskFamily) -> Teacher:
    if not isinstance(family, Teacher):
        raise ConfigError(
            f"env: {type(family).__name__} has no teacher (demonstrate, label_steps, explain, rewrite), which embedded "
            "models and the reward panel need; use real checkpoints (model=qwen2.5) and a labelled panel"
        )
    return family
