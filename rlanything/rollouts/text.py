"""What `rlanything rollouts show` prints. Every text of a model or an environment is made safe for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain, share
from rlanything.core.printable import one_line, safe
from rlanything.core.types import Json
from rlanything.rollouts.pictures import line
from rlanything.rollouts.select import numbers

Page = Mapping[str, Any]
VERDICTS = {1: "good", -1: "bad", None: "none"}
CELLS = {True: "+", False: "-", None: "?"}


def rollout_text(*, prompts: bool = False) -> Callable[[Json, Screen], str]:
    """The function that renders a page. prompts: also what the policy read."""

    def render(page: Page, screen: Screen) -> str:
        top = lay_out(list(_top(page)), screen)
        return top + _table(page, screen) + lay_out(list(_body(page, prompts)), screen)

    return render


def _top(page: Page) -> Iterator[RenderableType]:
    state = "" if page["state"] == "finished" else f" ({page['state']})"
    place = f"iteration {page['iteration']}, slot {page['slot']}, rollout {page['rollout']}"
    yield heading(f"{page['run']}{state}  {place}")
    yield plain(f"task {one_line(page['task']['task_id'])[:12]}  {one_line(page['task']['instruction'])}")
    if page["rewrite"]:
        found = page["rewrite"]
        why = f": {found['reason']}" if found["reason"] else ""
        yield plain(safe(f"a rewrite, to be {found['direction']}, {found['decision']}{why}"))
    error = f" ({one_line(page['error'])})" if page["error"] else ""
    yield plain(f"outcome {page['outcome']:+d}, {page['status']}{error}, {len(page['steps'])} steps")
    if page["staleness"] is not None:
        whose = "of the iteration before" if page["staleness"] else "that learn from it"
        yield plain(f"sampled by the weights {whose} (train.staleness)")
    trains = "trains the policy" if page["trains_policy"] else f"does not train the policy: {page['why_not']}"
    yield plain(trains)
    known = page["selectable"]
    chosen = [f"--{name[:-1]} {numbers(known[name])}" for name in ("iterations", "slots", "rollouts")]
    yield plain(f"to select: {'; '.join(chosen)}")
    if len(known["runs"]) > 1:
        yield plain(f"runs of this name: {safe(', '.join(known['runs']))}")
    for note in page["notes"]:
        yield plain(f"note: {safe(note)}")
    yield Text("")


def _table(page: Page, screen: Screen) -> str:
    """The rollouts of the task beside each other. The one that is shown has a mark."""
    rows = [
        [
            ("> " if row["rollout"] == page["rollout"] else "  ") + str(row["rollout"]),
            f"{row['outcome']:+d}",
            row["status"],
            str(row["steps"]),
            *(_number(row[name]) for name in ("reward", "advantage")),
            "yes" if row["trains"] else "no",
        ]
        for row in page["rollouts"]
    ]
    title = lay_out([heading(f"rollouts of this task, accuracy {share(page['accuracy'])}")], screen)
    names = ("  rollout", "outcome", "status", "steps", "mean R", "mean advantage", "trains")
    return title + "".join(aligned(names, rows, {1, 3, 4, 5}, screen))


def _body(page: Page, prompts: bool) -> Iterator[RenderableType]:
    yield Text("")
    yield heading("first observation")
    yield _block(page["first_observation"])
    yield from _pictures(page["first_images"])
    for step in page["steps"]:
        yield Text("")
        yield heading(f"step {step['step']}")
        if prompts and step["prompt"] is not None:
            yield _named("read", step["prompt"])
        if step["response"] is not None:
            yield _named("wrote", step["response"])
        yield _named("action" if step["valid"] else "no valid action", step["action"])
        if step["observation"]:
            yield _named("answer", step["observation"])
        yield from _pictures(step["images"])
        yield from (_votes(page, step) if page["writes"] == "votes" else _program(step))
    if page["tests"]:
        yield from _tests(page)


def _pictures(found: Sequence[dict[str, Json]]) -> Iterator[RenderableType]:
    for picture in found:
        yield _named("picture", line(picture))


def _votes(page: Page, step: Page) -> Iterator[RenderableType]:
    for vote in step["votes"]:
        trained = f"  (advantage {vote['advantage']:+.3f})" if vote["trains"] else ""
        said = vote["reason"] or ("" if vote["verdict"] else vote["reply"] or "")
        yield plain(f"  vote    {VERDICTS[vote['verdict']]:<4}  {one_line(said)}{trained}".rstrip())
    outcome = f"{page['outcome']:+d}" if page["uses_outcome"] else "0"
    equation = f"R = {outcome} + {page['lambda']:g} x {step['mean_vote']:+.3f} = {step['reward']:+.3f}"
    yield plain(f"  reward  {equation}, {_advantage(step)}")


def _program(step: Page) -> Iterator[RenderableType]:
    yield plain(f"  reward  R = {_number(step['reward'])}, {_advantage(step)}")


def _advantage(step: Page) -> str:
    found = step["advantage"]
    return "no advantage" if found is None else f"advantage {found:+.3f}"


def _tests(page: Page) -> Iterator[RenderableType]:
    """The matrix of programs and tests, and below it what was written."""
    tests = page["tests"]
    yield Text("")
    yield heading("programs and tests: + passes, - fails, ? could not be run")
    for row in tests["programs"]:
        mark = ">" if row["rollout"] == page["rollout"] else " "
        own, written = _cells(row["dataset"]), _cells(row["written"])
        right = {True: "right", False: "wrong", None: "open"}[row["right"]]
        yield plain(f"{mark} program {row['rollout']:<3} own {own}  written {written or 'none'}  {right}")
    for number, test in enumerate(tests["written"]):
        yield Text("")
        trained = f", advantage {test['advantage']:+.3f}" if test["trains"] else ", does not train"
        right = {True: "right", False: "wrong", None: "unknown whether right"}[test["right"]]
        readable = right if test["text"] else "the reply holds no test"
        yield heading(f"written test {number}: {readable}, reward {_number(test['reward'])}{trained}")
        yield _block(test["text"] or test["reply"] or "")


def _cells(row: Sequence[bool | None]) -> str:
    return "".join(CELLS[cell] for cell in row)


def _named(name: str, text: str) -> Text:
    """A text with its name before it; of several lines, below it."""
    if "\n" not in text.strip("\n"):
        return plain(f"  {name:<7} {safe(text.strip(chr(10)))}".rstrip())
    return Text(f"  {name}\n") + _block(text, indent=4)


def _block(text: str, indent: int = 2) -> Text:
    return Text("\n".join(" " * indent + safe(line) for line in text.strip("\n").split("\n")))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 3) + 0.0:+.3f}"  # no -0.000
