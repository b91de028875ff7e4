"""Stand-ins for the checkpoints that a configuration names, taught just enough that some of their replies can be read.

A model of random weights never writes an answer in a box, so a loop around it would only count unreadable replies. Each
small stand-in therefore sees the loop's own prompts with right answers (`lessons`) for a hundred optimizer steps
(`--steps`). One of a real checkpoint's size shows what memory and time that takes. It is taught where `--steps` is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything import targets
from rlanything.config import Checkpoint, Config, SupervisedConfig
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.protocols import GeneratedData, TaskFamily
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Direction, InvalidProposal, Task
from rlanything.engines import checkpoint, placement
from rlanything.files import atomic
from rlanything.files.images import passing
from rlanything.learn.packing import Row
from rlanything.learn.supervised import fit
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.loop.prompts import Prompts
from rlanything.rehearsal.architectures import WIDTH, Architecture, architecture
from rlanything.rehearsal.expert_lessons import Expert, ExpertLessons
from rlanything.rehearsal.lessons import Lessons, TeacherLessons
from rlanything.rehearsal.unfinished import Unfinished
from rlanything.rewards.kind import kind_of
from rlanything.runs import build
from rlanything.runs.progress.ticker import Ticker
from rlanything.stages.bootstrap.warmstart import reply_rows
from rlanything.stages.tasks import make_splits

Kinds = Mapping[str, str]
Declared = Mapping[str, Any]
NONE: Declared = MappingProxyType({})
POLICY, REWARD, ADAPTER = "policy", "reward", "adapter"
ROLES = {POLICY: "qwen2", REWARD: "llama", ADAPTER: "qwen3"}
"""The architecture of each model where the command names no other."""
LABELLER = "labeller"
"""The role of judges that label steps: like the reward model, with questions of their own."""
SIGHTED = "qwen3_vl"
"""The same of a model that is shown pictures."""
DATA = Path("checkpoints/data")
"""Where the settings of a rehearsal look for games and problems."""
STEPS = 100
"""Optimizer steps of a small stand-in's lessons where the command names no number."""
RATE = 5e-3
"""AdamW's learning rate of a small stand-in. A wider one's is lower in proportion (Yang et al. 2022, arXiv 2203.03466)."""
THOUGHT = "<think>\nThe goal decides.\n</think>\n\n"
"""What a stand-in with thoughts is taught to write before its answer, where its template does not begin a thought."""


class StandIns:
    """Makes the stand-ins of one configuration. steps: of their lessons; None: `STEPS` for the small ones alone."""

    def __init__(self, config: Config, root: Path, lessons: Lessons, steps: int | None) -> None:
        self.config = config
        self.root = root
        self.prompts: Prompts = build.prompts(config, root)
        self.lessons = lessons
        self.steps = steps

    def make(self, name: str, roles: Sequence[str], chosen: Architecture, place: Path) -> None:
        """Write one stand-in to its folder, whole or not at all.

        name: decides its first weights. roles: what it is taught; more than one for a model that roles share.
        """
        tokenizer = chosen.tokenizer(self._texts(chosen))
        seed = derive_seed(self.config.seed, "rehearse", name) % 2**31
        if chosen.sizes:
            model = chosen.of_real_size(tokenizer, seed, placement.device(self.config.train))
        else:
            model = chosen.fresh(tokenizer, seed)
        if self.steps is not None or not chosen.sizes:
            self._learn(name, roles, chosen, model, tokenizer)
        with atomic.whole(place) as folder:
            checkpoint.save(model, tokenizer, folder)
            chosen.save_eyes(folder)

    def _learn(
        self,
        name: str,
        roles: Sequence[str],
        chosen: Architecture,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        rows: list[Sequence[Row]] = []
        for role in roles:
            with self._sight(role, chosen, model) as seen:
                with build.chat_model(self.config, model, tokenizer, seen) as chat_model:
                    rows += self._rows(role, chosen, chat_model)
                if role == roles[-1]:  # a model that reads pictures has one role
                    steps = sum(self.lessons.factors.get(one, 1) for one in roles) * (self.steps or STEPS)
                    self._teach(name, model, rows, steps, seen)

    @contextmanager
    def _sight(self, role: str, chosen: Architecture, model: PreTrainedModel) -> Iterator[Sight | None]:
        """How the model is shown the pictures of the lessons; None where it is shown none."""
        if role == ADAPTER or not self.lessons.images:
            yield None
            return
        with passing() as images, TemporaryDirectory() as folder:
            images.add(self.lessons.images)
            chosen.save_eyes(Path(folder))
            shown = POLICY if role == POLICY else REWARD
            yield build.sight(self.config, shown, Checkpoint(path=folder), self.root, model, images)

    def _teach(
        self, name: str, model: PreTrainedModel, rows: Sequence[Sequence[Row]], steps: int, seen: Sight | None
    ) -> None:
        rate = RATE * WIDTH / model.config.get_text_config().hidden_size
        settings = SupervisedConfig(episodes=len(rows), steps=steps, batch=4, lr=rate)
        ticker = Ticker(f"rehearse: {name}", steps)
        fit(
            model,
            rows,
            settings,
            derive_seed(self.config.seed, "rehearse", "fit", name),
            lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}"),
            eyes=seen.eyes if seen else None,
        )

    def _rows(self, role: str, chosen: Architecture, chat_model: ChatModel) -> list[list[Row]]:
        if role == POLICY:
            return self.lessons.policy_rows(chat_model)
        if role in (REWARD, LABELLER):
            return [[row] for row in self.lessons.reward_rows(chat_model, role == LABELLER)]
        return [reply_rows(chat_model, question, reply, 0.0) for question, reply in self._replies(chosen)]

    def _replies(self, chosen: Architecture) -> list[tuple[str, str]]:
        """(question, reply) of the adapter's model: of each task summaries, and rewrites in both directions."""
        thought = THOUGHT if chosen.thinks and not chosen.opens else ""
        pairs = []
        for task, demo in zip(self.lessons.tasks, self.lessons.demos, strict=True):
            critic = self.lessons.critic(task)
            steps = [f"[{number}] {action}" for number, (_, action) in enumerate(demo)]
            questions = [self.prompts.fill("critic", task=task.instruction, steps="\n".join(steps))]
            if self.config.adaptation.critic_stages == 2:
                asked = {"task": task.instruction, "step": steps[0], "reasons": critic}
                questions.append(self.prompts.fill("critic_step", **asked))
            pairs += [(question, rf"{thought}\boxed{{{critic}}}") for question in questions]
            for way, accuracy in ((Direction.HARDER, "100%"), (Direction.EASIER, "0%")):
                try:
                    facts, reply = self.lessons.rewriting(task, way)
                except InvalidProposal:
                    continue
                given = {"facts": facts, "direction": way.value, "accuracy": accuracy, "critic": critic}
                pairs.append((self.prompts.fill("adapter", **given), thought + reply))
        return pairs

    def _texts(self, chosen: Architecture) -> list[str]:
        """What the models read and write, for their tokenizers."""
        shown = [text for demo in self.lessons.demos for seen, action in demo for text in (seen.text, action)]
        pairs = [text for pair in self._replies(chosen) for text in pair]
        return [*shown, *pairs, *self.lessons.corpus()]


def make(
    config: Config, root: Path, steps: int | None, kinds: Kinds, declared: Declared = NONE
) -> list[Path]:
    """Write generated data and the stand-ins of all models; returns the folders of models that were not there yet.

    What it made before it was ended is kept, until `unfinished.end`.

    Args:
        steps: optimizer steps of each one's lessons, real sizes too; None: `STEPS` for the small ones alone.
        kinds: architectures or names of real checkpoints by role; a role that is left out has that of `ROLES`, or
            `SIGHTED`. Judges that label steps are like the reward model.
        declared: name of a real checkpoint -> fields of its config.json.

    Raises:
        ConfigError: before any work, for embedded models, an environment that teaches nothing, a path that is no free
            folder below the root, data that is there already, or a folder that roles cannot share.
        MachineError: before any work, where the environment cannot run on this machine; for a model of real size that
            has no room on the device.
    """
    unfinished = Unfinished(root, config, steps, kinds, declared)
    for name, (_, source) in _sources(config).items():
        place = (root / source.path).resolve()
        if root.resolve() not in place.parents:
            raise ConfigError(
                f"{name}.path = {source.path}: a stand-in is written to a folder of the project"
            )
        unfinished.require_free(f"{name}.path = {source.path}", place)
    check(config, root, steps, kinds, declared)
    if not _is_expert(config):
        unfinished.require_free(str(root / DATA), root / DATA)
    unfinished.begin()
    standins = StandIns(config, root, _lessons(config, root), steps)
    places = _places(config, root, kinds, declared)
    missing = [place for place in places if not place.exists()]
    for place in missing:
        name, roles, chosen = places[place]
        standins.make(name.removeprefix("model."), roles, chosen, place)
    return missing


def check(config: Config, root: Path, steps: int | None, kinds: Kinds, declared: Declared = NONE) -> None:
    """Raise as `make` does before any work, whatever lies in the folders of the models."""
    if config.model.embedded is not None:
        raise ConfigError(
            "model.embedded: these models are made by `bootstrap`; a rehearsal is for checkpoints"
        )
    if steps is not None and steps < 1:
        raise ConfigError(f"--steps {steps}: must be at least 1")
    _places(config, root, kinds, declared)
    if _is_expert(config):
        _begun(config, make_splits(config, root)[TRAIN][:1])


def _places(
    config: Config, root: Path, kinds: Kinds, declared: Declared
) -> dict[Path, tuple[str, list[str], Architecture]]:
    """Folder of a stand-in -> key of the first role that has it, all roles in the lessons, and architecture.

    Roles may share a model of real size. Raises `ConfigError` for a small one, or where they name different
    architectures.
    """
    found: dict[Path, tuple[str, list[str], Architecture]] = {}
    for name, (role, source) in _sources(config).items():
        place = (root / source.path).resolve()
        if place not in found:
            found[place] = name, [role], _architecture(config, role, kinds, declared)
            continue
        other, roles, chosen = found[place]
        if not chosen.sizes or (role in kinds and _architecture(config, role, kinds, declared) != chosen):
            raise ConfigError(
                f"{name}.path = {source.path}: it is the folder of {other} too. Only roles with one checkpoint of real "
                "size share a folder; a small stand-in is taught for one role"
            )
        roles.append(role)
    return found


def _lessons(config: Config, root: Path) -> Lessons:
    """What the stand-ins learn. Data that replaces a downloaded set is written where the environment needs one."""
    if _is_expert(config):
        family = build.family(config)
        assert isinstance(family, Expert)
        tasks = {task.task_id: task for found in make_splits(config, root).values() for task in found}
        images = _begun(config, list(tasks.values()))
        return ExpertLessons(config, build.prompts(config, root), family, list(tasks.values()), images)
    generated = _generated(config)
    data = generated.stand_ins(config.tasks.drawn, config.seed)
    if not (root / DATA).exists():
        with atomic.whole(root / DATA) as folder:
            generated.write_data(folder, data)
    return TeacherLessons(config, root, generated, [task for found in data.values() for task in found])


def _is_expert(config: Config) -> bool:
    """Whether the environment's tasks are there already, with experts."""
    return issubclass(targets.named_class(config.env, "env", TaskFamily), Expert)


def _generated(config: Config) -> GeneratedData:
    """The configured class with its easiest generated tasks. Raises `ConfigError` when it generates none."""
    cls = targets.named_class(config.env, "env", GeneratedData)
    found: GeneratedData = cls.easiest(config.env)  # type: ignore[attr-defined]  # `named_class` looked for it
    kind_of(config).check(config, found)
    return found


def _sources(config: Config) -> dict[str, tuple[str, Checkpoint]]:
    """Key below `model`, or name of a judge that labels steps -> its role in the lessons, and where it is."""
    named: dict[str, tuple[str, Checkpoint]] = {
        f"model.{role}": (role, getattr(config.model, role)) for role in ROLES
    }
    for name, judge in config.evaluate.judges.items():
        named[f"evaluate.judges.{name}"] = LABELLER, judge
    return named


def _architecture(config: Config, role: str, kinds: Kinds, declared: Declared) -> Architecture:
    """The architecture of a role. Raises `ConfigError` for an unknown one, and for one without eyes that needs some."""
    role = REWARD if role == LABELLER else role
    shown = getattr(config.model.images, role, 0)
    name = kinds.get(role) or (SIGHTED if shown else ROLES[role])
    chosen = architecture(name, declared)
    if shown and chosen.patch is None:
        raise ConfigError(
            f"--{role} {name}: it reads text alone, and model.images.{role} = {shown}; choose qwen2_5_vl or qwen3_vl"
        )
    return chosen


def _begun(config: Config, tasks: Sequence[Task]) -> dict[str, Sequence[Image]]:
    """Task id -> the pictures that its episode begins with. Raises `MachineError` where one cannot begin."""
    family = build.family(config)
    found: dict[str, Sequence[Image]] = {}
    for task in tasks:
        environment = family.environment()
        try:
            found[task.task_id] = environment.reset(task, config.seed).images
        except MachineError:
            raise
        except Exception as error:  # whatever an environment raises
            raise MachineError(f"env: no episode can begin on this machine: {error}") from error
        finally:
            environment.close()
    return found
