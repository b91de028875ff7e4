"""A stand-in is made, and taught just enough that some of its replies can be read.

A model of random weights never writes an answer in a box, so a loop around it would only count unreadable replies. Each
small stand-in therefore sees the loop's own prompts with right answers (`lessons`) for a hundred optimizer steps
(`--steps`), or a multiple (`Lessons.factors`). One of a real checkpoint's size is taught where `--steps` is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlanything.config import Checkpoint, Config, SupervisedConfig
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, InvalidProposal
from rlanything.engines import checkpoint, placement
from rlanything.files import atomic
from rlanything.files.images import passing
from rlanything.learn.packing import Row
from rlanything.learn.supervised.fit import fit
from rlanything.learn.supervised.gradient import whole
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.loop.prompts import Prompts
from rlanything.rehearsal.architectures import WIDTH, Architecture
from rlanything.rehearsal.lessons import Lessons
from rlanything.runs import build
from rlanything.runs.progress.ticker import Ticker
from rlanything.stages.bootstrap.warmstart import reply_rows

POLICY, REWARD, ADAPTER = "policy", "reward", "adapter"
LABELLER = "labeller"
"""The role of judges that label steps: like the reward model, with questions of their own."""
STEPS = 100
"""Optimizer steps of a small stand-in's lessons where the command names no number."""
RATE = 5e-3
"""AdamW's learning rate of a small stand-in. A wider one's is lower in proportion (Yang et al. 2022, arXiv
2203.03466)."""
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
        with ExitStack() as open_eyes:
            for role in roles:
                seen = open_eyes.enter_context(self._sight(role, chosen, model))
                with build.chat_model(self.config, model, tokenizer, seen) as chat_model:
                    rows += self._rows(role, chosen, chat_model)
            steps = sum(self.lessons.factors.get(role, 1) for role in roles) * (self.steps or STEPS)
            self._teach(name, model, rows, steps, seen)  # a model that reads pictures has one role

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
        with placement.in_room(f"{name}: {model.device} has no room to teach it (--steps)"):
            fit(
                model,
                rows,
                settings,
                derive_seed(self.config.seed, "rehearse", "fit", name),
                lambda step, _, loss: ticker.tick(step, f"loss {loss:.3f}"),
                gradient=partial(whole, eyes=seen.eyes if seen else None),
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
