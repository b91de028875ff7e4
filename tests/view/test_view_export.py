"""`rlanything view`: what it writes is what the run has, in both settings, whole or not at all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import view_cases
from stage_cases import small
from view_cases import read

from rlanything.loop.record import EpisodeRecord
from rlanything.repro.stored import StoredIteration, StoredRun
from rlanything.runs import families
from rlanything.view.export import export
from rlanything.view.filters import FILTERS
from rlanything.view.rows import STATUSES
from rlanything.view.words import FILES, file_of, said, words

pytestmark = pytest.mark.integration
RUN = "full/seed-0"


@pytest.fixture(scope="module")
def shown(project, tmp_path_factory) -> Path:
    """The page of the finished run."""
    place = tmp_path_factory.mktemp("view") / "page"
    made = export(RUN, place, root=project, environment=True)  # the project has no params.yaml
    assert not made.notes
    return place


@pytest.fixture(scope="module")
def records(undisturbed) -> list[tuple[int, EpisodeRecord]]:
    run = StoredRun(undisturbed)
    return [(k, r) for k in range(small().train.iterations) for r in StoredIteration(run, k).episodes]


def flagged(index: dict[str, Any], name: str) -> list[bool]:
    bit = 1 << list(FILTERS).index(name)
    return [bool(flags & bit) for flags in index["rows"]["flags"]]


def rollouts(shown: Path, index: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(group, rollout) of every row of the index, in order."""
    found = []
    for iteration in dict.fromkeys(index["groups"]["iteration"]):
        for group in read(shown, f"iterations/{iteration}"):
            found += [(group, rollout) for rollout in group["rollouts"]]
    return found


def mean_vote(record: EpisodeRecord) -> float:
    """Over the steps; of a step over the votes with a verdict."""
    verdicts = [[v.verdict for v in j.votes if v.verdict is not None] for j in record.episode.judgements]
    return fmean(sum(some) / max(1, len(some)) for some in verdicts)


def test_every_rollout_has_a_row(shown, records):
    index = read(shown, "index")
    rows, groups = index["rows"], index["groups"]
    trajectories = [r.episode.trajectory for _, r in records]
    assert rows["rollout"] == [t.rollout for t in trajectories]
    assert rows["outcome"] == [t.outcome for t in trajectories]
    assert [STATUSES[k] for k in rows["status"]] == [t.status.value for t in trajectories]
    assert rows["steps"] == [len(t.steps) for t in trajectories]
    assert flagged(index, "failed") == [t.outcome < 0 and t.counts for t in trajectories]
    assert flagged(index, "trains") == [r.episode.advantages is not None for _, r in records]
    assert flagged(index, "disputed") == [
        any({1, -1} <= {v.verdict for v in j.votes} for j in r.episode.judgements) for _, r in records
    ]
    assert rows["vote"] == pytest.approx([mean_vote(r) for _, r in records], abs=1e-4)
    for name, count in (("iteration", groups["count"]), ("slot", groups["count"])):
        spread = [value for value, many in zip(groups[name], count, strict=True) for _ in range(many)]
        assert spread == [k if name == "iteration" else r.episode.trajectory.slot for k, r in records]
    assert groups["first"] == [sum(groups["count"][:k]) for k in range(len(groups["count"]))]


def test_steps_votes_and_tokens_are_those_of_the_records(shown, records):
    found = rollouts(shown, read(shown, "index"))
    for (group, rollout), (iteration, record) in zip(found, records, strict=True):
        steps = record.episode.trajectory.steps
        assert [(s["action"], s["observation"], s["valid"]) for s in rollout["steps"]] == [
            (s.action, s.observation, s.valid) for s in steps
        ]
        assert [[v["verdict"] for v in s["votes"]] for s in rollout["steps"]] == [
            [v.verdict for v in j.votes] for j in record.episode.judgements
        ]
        tokens = read(shown, f"tokens/{iteration}")
        kept = tokens["rollouts"][f"{group['slot']}/{int(record.proposal)}/{rollout['rollout']}"]
        assert [tuple(s["ids"]) for s in kept["steps"]] == [s.response_ids for s in steps]
        for one, step in zip(kept["steps"], steps, strict=True):
            assert one["logprobs"] == pytest.approx(step.logprobs, abs=1e-4)
            texts = [tokens["texts"]["policy"][str(k)] for k in step.response_ids]
            assert step.action.split() == " ".join(texts).removesuffix("<|end|>").split()
        for chosen, judgement in zip(kept["votes"], record.episode.judgements, strict=True):
            assert [tuple(v["ids"]) for v in chosen] == [v.response_ids for v in judgement.votes]


def test_the_environment_says_which_steps_were_good_and_what_was_possible(shown, records, project):
    family = families.family(small())
    index, said = read(shown, "index"), 0
    against = []
    for (_, rollout), (iteration, record) in zip(rollouts(shown, index), records, strict=True):
        task = StoredIteration(StoredRun(project / "runs" / RUN), iteration).tasks[
            record.episode.trajectory.task_id
        ]
        actions = [step["action"] for step in rollout["steps"]]
        labels = family.label_steps(task, actions)
        assert [step["good"] for step in rollout["steps"]] == labels
        assert [step["reason"] for step in rollout["steps"]] == family.explain(task, actions)
        for step in rollout["steps"]:
            assert step["action"] in step["commands"], "only admissible commands can be sampled here"
            said += len(step["commands"])
        against.append(
            any(
                v["verdict"] in (1, -1) and (v["verdict"] == 1) != good
                for step, good in zip(rollout["steps"], labels, strict=True)
                for v in step["votes"]
            )
        )
    assert said > 100
    assert flagged(index, "against") == against


def test_the_index_of_words_has_every_word_of_every_rollout(shown):
    index = read(shown, "index")
    expected: dict[str, set[int]] = {}
    for row, (group, rollout) in enumerate(rollouts(shown, index)):
        texts = [group["task"]["instruction"], rollout["first_observation"]]
        for step in rollout["steps"]:
            texts += [step["action"], said(step["response"]), step["observation"]]
            texts += [text for vote in step["votes"] for text in (vote["reason"], said(vote["reply"]))]
        for word in words("\n".join(texts)):
            expected.setdefault(word, set()).add(row)
    found = {}
    for number in index["words"]:
        for word, distances in read(shown, f"words/{number}").items():
            assert file_of(word) == number < FILES
            found[word] = {sum(distances[: k + 1]) for k in range(len(distances))}
    assert found == expected


def test_the_history_has_every_version_and_event(shown, undisturbed):
    buffers = StoredRun(undisturbed).buffers
    kept = {slot: one for k in range(64) if (shown / f"data/history/{k}.json.gz").exists()
            for slot, one in read(shown, f"history/{k}").items()}  # fmt: skip
    assert Counter(event["kind"] for one in kept.values() for event in one["events"]) == Counter(
        event.kind.value for event in buffers.events
    )
    for lineage in buffers.latest.lineages:
        versions = kept[str(lineage.slot)]["versions"]
        assert [v["task"]["task_id"] for v in versions] == [v.task.task_id for v in lineage.versions]


def test_made_up_pages_have_the_fields_of_real_ones(shown, coding_project, tmp_path):
    """The browser's tests use made-up pages."""
    export("full", tmp_path / "coding", root=coding_project)
    for page, folder in ((view_cases.steps_run(), shown), (view_cases.programs_run(), tmp_path / "coding")):
        mine = page[0].groups[0]
        real, at = next(
            (g, k) for k in (0, 1) for g in read(folder, f"iterations/{k}") if g["rollouts"][0]["steps"]
        )
        assert set(mine) == set(real)
        assert set(mine["rollouts"][0]) == set(real["rollouts"][0])
        assert set(mine["rollouts"][0]["steps"][0]) == set(real["rollouts"][0]["steps"][0])
        token = read(folder, f"tokens/{at}")
        assert set(token) == set(page[0].tokens)
        some, other = (next(iter(t["rollouts"].values())) for t in (token, page[0].tokens))
        assert set(some) == set(other)
        assert set(some["steps"][0]) == set(other["steps"][0])
        if real["tests"]:
            assert set(real["tests"]) == set(mine["tests"])
            assert set(real["tests"]["written"][0]) == set(mine["tests"]["written"][0])
            assert set(real["tests"]["programs"][0]) == set(mine["tests"]["programs"][0])
        else:
            votes = [
                s["votes"][0] for s in (real["rollouts"][0]["steps"][0], mine["rollouts"][0]["steps"][0])
            ]
            assert set(votes[0]) == set(votes[1])


def test_programs_have_rows_and_flags_too(coding_project, tmp_path):
    export("full", tmp_path / "page", root=coding_project)
    index = read(tmp_path / "page", "index")
    assert index["writes"] == "tests"
    assert index["filters"]["failed"][1] == "the program fails a test of the task"
    for row, (group, rollout) in enumerate(rollouts(tmp_path / "page", index)):
        (program,) = [p for p in group["tests"]["programs"] if p["rollout"] == rollout["rollout"]]
        assert flagged(index, "failed")[row] == (not all(program["dataset"]))
        assert rollout["reward"] == program["reward"]
