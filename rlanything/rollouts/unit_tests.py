"""What unit tests made of a program: every program of the task on every test, the rewards of both, and what trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlanything.core.coding_signals import (
    generated_rewards,
    gt_programs,
    gt_tests,
    pass_rates,
    program_rewards,
)
from rlanything.core.errors import ConfigError
from rlanything.core.unittests import Tables, UnitTest
from rlanything.loop.group import compared
from rlanything.rewards.unit_tests.records import FILE, UnitTestRecord
from rlanything.rollouts.decoding import Texts, decode, decode_endpoint
from rlanything.rollouts.runs import NamedRun, Terms
from rlanything.rollouts.select import Chosen, Tries


def explain(run: NamedRun, chosen: Chosen) -> dict[str, Any]:
    """The parts of the page that this kind of reward model fills: `tests` for the task, `steps` and `notes`."""
    record = _record(chosen)
    tables, replies = record.examined.tables, record.examined.tests
    texts = _texts(run, replies)
    found = _rewards(tables, run.terms)
    right = gt_programs(tables.dataset)
    rows = programs(chosen.tries)
    number = chosen.record.episode.trajectory.rollout
    reward = found[rows.index(number)] if number in rows else None
    steps = [{"reward": reward} for _ in chosen.record.episode.trajectory.steps]
    tests: dict[str, Any] = {
        "programs": [
            {"rollout": k, "right": right[i], "reward": found[i]}
            | {"dataset": list(tables.dataset[i]), "written": list(tables.generated[i])}
            for i, k in enumerate(rows)
        ],
        "dataset_pass_rates": pass_rates(tables.dataset),
        "written": _written(tables, record, texts),
        "agreed": record.examined.agreed,
    }
    return {"steps": steps, "tests": tests, "notes": [texts.problem] if texts.problem else []}


def programs(tries: Tries) -> list[int]:
    """The rollout of each row of the tables: crashed episodes have no row."""
    return [r.episode.trajectory.rollout for r in tries.records if compared(r.episode)]


def _rewards(tables: Tables, terms: Terms) -> list[float | None]:
    """The reward of each program, as the run's arm and its settings take written tests into account."""
    lam, counted = terms.arm.lambda_of(terms.signals), terms.signals.written
    return program_rewards(tables.dataset, tables.generated, tables.readable, lam, counted)


def _written(tables: Tables, record: UnitTestRecord, texts: Texts) -> list[dict[str, Any]]:
    """The written tests: text, whether every right program passes it, reward, advantage."""
    readable, lesson = tables.readable, record.examined.lesson
    right = gt_tests(tables.generated, gt_programs(tables.dataset), readable)
    paid = generated_rewards(tables.dataset, tables.generated, readable)
    advantages = lesson.advantages if lesson else (None,) * len(readable)
    return [
        {
            "text": tables.tests[k],
            "reply": texts.of(test.response_ids),
            "tokens": len(test.response_ids),
            "right": right[k],
            "reward": paid[k],
            "advantage": advantages[k],
            "trains": advantages[k] is not None,
        }
        for k, test in enumerate(record.examined.tests)
    ]


def _record(chosen: Chosen) -> UnitTestRecord:
    task = chosen.record.episode.trajectory.task_id
    for record in chosen.stored.read(FILE, UnitTestRecord.from_json):
        if (record.slot, record.proposal, record.task_id) == (chosen.tries.slot, chosen.tries.proposal, task):
            _require_rows(record, chosen)
            return record
    file = chosen.stored.run.file(chosen.stored.iteration, FILE)
    raise ConfigError(f"{file}: no tests of slot {chosen.tries.slot}, task {task[:12]}")


def _require_rows(record: UnitTestRecord, chosen: Chosen) -> None:
    rows, ran = len(programs(chosen.tries)), len(record.examined.tables.dataset)
    if rows != ran:
        file = chosen.stored.run.file(chosen.stored.iteration, FILE)
        raise ConfigError(f"{file}: slot {record.slot}: results of {ran} programs, but {rows} rollouts ran")


def _texts(run: NamedRun, replies: Sequence[UnitTest]) -> Texts:
    ids = [test.response_ids for test in replies]
    if replies and not any(test.logprobs for test in replies):
        return decode_endpoint(ids)
    return decode(run, "reward", ids)
