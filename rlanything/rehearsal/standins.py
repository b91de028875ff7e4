"""Stand-ins for the checkpoints that a configuration names, taught just enough that some of their replies can be read.

A model of random weights never writes an answer in a box, so a loop around it would only count unreadable replies. Each
stand-in therefore sees the loop's own prompts with the teacher's answers for a hundred optimizer steps (`--steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything import targets
from rlanything.config import Checkpoint, Config, SupervisedConfig
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import GeneratedData
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, InvalidProposal, Task
from rlanything.engines import checkpoint
from rlanything.files import atomic
from rlanything.learn.packing import Row
from rlanything.learn.supervised import fit
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.rehearsal.architectures import Architecture, architecture
from rlanything.rewards.kind import kind_of
from rlanything.rewards.protocols import Demonstration, WarmStart
from rlanything.rewards.requirements import teacher
from rlanything.runs import build
from rlanything.runs.progress.ticker import Ticker
from rlanything.stages.bootstrap.warmstart import demonstration_rows, reply_rows

ROLES = {"policy": "qwen2", "reward": "llama", "adapter": "qwen3"}
"""The architecture of each model where the command names no other."""
DATA = Path("checkpoints/data")
"""Where the settings of a rehearsal look for games and problems."""
PRACTICE_STEPS = 2
"""Steps of an episode on which the reward model's stand-in is taught: each costs the whole prompt of the policy."""
THOUGHT = "<think>\nThe goal decides.\n</think>\n\n"
"""What a stand-in with thoughts is taught to write before its answer."""


class StandIns:
    """Makes the three stand-ins of one configuration.

    family: of a generated world, whose teacher they learn from. tasks: those of the rehearsal itself; known by heart,
    some are solved, and there is something to judge.
    """

    def __init__(
        self, config: Config, root: Path, family: GeneratedData, tasks: Sequence[Task], steps: int
    ) -> None:
        self.config = config
        self.root = root
        self.prompts: Prompts = build.prompts(config, root)
        self.family = family
        # A fresh model writes no command; constrained to commands, it acts at random, sometimes rightly.
        practice = config.rollout.model_copy(update={"decoding": "constrained", "max_steps": PRACTICE_STEPS})
        acting = config.model_copy(update={"rollout": practice})
        self.taught: WarmStart = kind_of(config).warm_start(acting, family, self.prompts)
        self.tasks = tasks
        self.demos = [self._demonstration(task) for task in self.tasks]
        self.settings = SupervisedConfig(episodes=len(self.tasks), steps=steps, batch=4)

    def make(self, role: str, chosen: Architecture, source: Checkpoint) -> None:
        """Write one stand-in to its folder, whole or not at all."""
        tokenizer = chosen.tokenizer(self._texts(chosen))
        model = chosen.fresh(tokenizer, derive_seed(self.config.seed, "rehearse", role) % 2**31)
        with build.chat_model(self.config, model, tokenizer) as chat_model:
            rows = self._rows(role, chosen, chat_model)
        ticker = Ticker(f"rehearse: {role}", self.settings.steps)
        fit(
            model,
            rows,
            self.settings,
            derive_seed(self.config.seed, "rehearse", "fit", role),
            lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}"),
        )
        with atomic.whole(self.root / source.path) as folder:
            checkpoint.save(model, tokenizer, folder)
            chosen.save_eyes(folder)

    def _demonstration(self, task: Task) -> Demonstration:
        seed = derive_seed(self.config.seed, "rehearse", task.task_id)
        return teacher(self.family).demonstrate(task, seed, 0.0)[: self.config.rollout.max_steps]

    def _rows(self, role: str, chosen: Architecture, chat_model: ChatModel) -> list[list[Row]]:
        if role == "policy":
            return [demonstration_rows(chat_model, self.prompts, demo, 0.0) for demo in self.demos]
        if role == "reward":
            return [[row] for row in self.taught.rows(chat_model, self.tasks)]
        return [reply_rows(chat_model, question, reply, 0.0) for question, reply in self._replies(chosen)]

    def _replies(self, chosen: Architecture) -> list[tuple[str, str]]:
        """(question, reply) of the adapter's model: of each task a summary, and rewrites in both directions."""
        thought = THOUGHT if chosen.thinks else ""
        pairs = []
        for task, demo in zip(self.tasks, self.demos, strict=True):
            critic = self.taught.critic(task, self.config.seed)
            steps = "\n".join(f"[{number}] {action}" for number, (_, action) in enumerate(demo))
            question = self.prompts.fill("critic", task=task.instruction, steps=steps)
            pairs.append((question, rf"{thought}\boxed{{{critic}}}"))
            for way, accuracy in ((Direction.HARDER, "100%"), (Direction.EASIER, "0%")):
                try:
                    facts, reply = self.family.rewriting(task, way, self.config.seed)
                except InvalidProposal:
                    continue
                given = {"facts": facts, "direction": way.value, "accuracy": accuracy, "critic": critic}
                pairs.append((self.prompts.fill("adapter", **given), thought + reply))
        return pairs

    def _texts(self, chosen: Architecture) -> list[str]:
        """What the models read and write, for their tokenizers."""
        shown = [text for demo in self.demos for seen, action in demo for text in (seen.text, action)]
        pairs = [text for pair in self._replies(chosen) for text in pair]
        return [*shown, *pairs, *self.taught.corpus(self.tasks, self.demos)]


def make(config: Config, root: Path, steps: int, kinds: dict[str, str]) -> list[Path]:
    """Write generated data and the stand-ins of policy, reward model and adapter; returns the models' folders.

    Args:
        steps: optimizer steps of each one's lessons.
        kinds: architectures by role; a role that is left out has that of `ROLES`.

    Raises:
        ConfigError: before any work, for embedded models, an environment that generates no tasks, or a path that is no
            free folder below the root.
    """
    if config.model.embedded is not None:
        raise ConfigError(
            "model.embedded: these models are made by `bootstrap`; a rehearsal is for checkpoints"
        )
    if steps < 1:
        raise ConfigError(f"--steps {steps}: must be at least 1")
    sources = {role: getattr(config.model, role) for role in ROLES}
    chosen = {role: architecture(kinds.get(role) or kind) for role, kind in ROLES.items()}
    for role, source in sources.items():
        _require_free(role, source.path, root)
    family = _generated(config)
    data = family.stand_ins(config.tasks.drawn, config.seed)
    with atomic.whole(root / DATA) as folder:
        family.write_data(folder, data)
    standins = StandIns(config, root, family, [task for found in data.values() for task in found], steps)
    for role, source in sources.items():
        standins.make(role, chosen[role], source)
    return [root / source.path for source in sources.values()]


def _generated(config: Config) -> GeneratedData:
    """The configured class with its easiest generated tasks. Raises `ConfigError` when it generates none."""
    cls = targets.named_class(config.env, "env", GeneratedData)
    found: GeneratedData = cls.easiest(config.env)  # type: ignore[attr-defined]  # `named_class` looked for it
    kind_of(config).check(config, found)
    return found


def _require_free(role: str, path: str, root: Path) -> None:
    place = (root / path).resolve()
    if root.resolve() not in place.parents:
        raise ConfigError(f"model.{role}.path = {path}: a stand-in is written to a folder of the project")
    if place.exists():
        raise ConfigError(f"model.{role}.path = {path}: it exists, and is not overwritten; remove it first")
