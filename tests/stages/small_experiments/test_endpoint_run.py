"""A run whose frozen reward model and adapter are behind an endpoint: with faults, killed and resumed, replayed."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import KEY, Endpoint, serving
from stage_cases import ROOT, contents, lines, small

from rlanything.config import Checkpoint, Config, JudgeSource
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.types import Request
from rlanything.engines.openai.engine import OpenAIEngine
from rlanything.engines.placement import Role
from rlanything.files.reader import read_objects
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.record import EpisodeRecord
from rlanything.repro import replay_report
from rlanything.runs import build
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train

RUN = Path("runs/full/seed-0")
pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(900)]
FAULTS = ("429 0", "drop", "", "500", "truncated", "malformed", "", "null")


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)


def config(server: Endpoint) -> Config:
    """An arm that votes and adapts, and trains the policy only; both other models are behind the server."""
    found = small("~arm@arms.policy_reward", "arms.full.train_reward=false", "adaptation.critic=model")
    data = found.model_dump(by_alias=True)
    waits = {"input_price": 2.0, "output_price": 8.0, "context": 4096}
    roles = {role: server.section(model=role, **waits) for role in ("reward", "adapter")}
    return Config.model_validate({**data, "endpoints": roles})


@pytest.fixture(scope="module")
def models(tiny_project) -> Callable[[dict[str, Any]], str]:
    """Answers with the tiny models of the project, by the name that a request asks for."""
    lock = threading.Lock()

    @cache
    def chat_model(role: str) -> ChatModel:
        loaded = build.load(small(), Checkpoint(path=f"models/{role}"), tiny_project, Role.FROZEN, role)
        return build.chat_model(small(), *loaded)

    def answer(body: dict[str, Any]) -> str:
        with lock:
            model = chat_model(body["model"])
            prompt = model.start(body["messages"])
            request = Request(prompt, body["seed"], body["max_tokens"], body["temperature"])
            return model.decode(model.generate([request])[0].ids)

    return answer


@pytest.fixture(scope="module")
def server(models) -> Iterator[Endpoint]:
    with serving(FAULTS, answer=models, models=("reward", "adapter")) as found:
        yield found


def project(source: Path, to: Path) -> Path:
    """A project of one's own with the same inputs and no run."""
    shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    return to


@pytest.fixture(scope="module")
def trained(tiny_project, server, tmp_path_factory) -> Path:
    """A project with a finished run; not to be changed."""
    root = project(tiny_project, tmp_path_factory.mktemp("endpoint") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_ENDPOINT_KEY", KEY)
        train.train_arm(config(server), root, "full")
    return root


def test_a_run_with_faults_ends_and_counts_what_it_used(trained, server):
    rows = lines(trained / RUN / "metrics.jsonl")[:-1]
    assert sum(row["endpoint/reward/replies"] for row in rows) > 0
    assert sum(row["endpoint/adapter/replies"] for row in rows) > 0
    for row in rows:
        for role in ("reward", "adapter"):
            replies = row[f"endpoint/{role}/replies"] - row[f"endpoint/{role}/empty"]
            assert replies * 11 <= row[f"endpoint/{role}/prompt_tokens"]
            assert row[f"endpoint/{role}/unmetered"] == 0
            spent = 2 * row[f"endpoint/{role}/prompt_tokens"] + 8 * row[f"endpoint/{role}/reply_tokens"]
            assert row[f"endpoint/{role}/cost"] == pytest.approx(spent / 1e6)
    assert {body["model"] for body in server.seen} == {"reward", "adapter"}


def test_votes_are_stored_as_text_without_log_probs(trained):
    found = [
        EpisodeRecord.from_json(record)
        for path in sorted((trained / RUN / "rollouts").iterdir())
        for record in read_objects(path)
    ]
    votes = [vote for one in found for judged in one.episode.judgements for vote in judged.votes]
    assert {vote.verdict for vote in votes} & {1, -1}
    assert all(vote.logprobs == () for vote in votes)
    assert all(vote.response_ids for vote in votes if vote.verdict is not None)


def test_the_run_is_replayed_without_the_endpoint_and_without_a_key(trained, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a replay asks nobody")

    monkeypatch.delenv("TEST_ENDPOINT_KEY")
    monkeypatch.setattr(OpenAIEngine, "__init__", refuse)
    assert replay_report.replay_run(trained / RUN, []).problem == ""
    assert replay_report.replay_run(trained / RUN, [], play=True).problem == ""


def test_the_key_is_in_no_file_of_the_project(trained):
    files = [path for path in trained.rglob("*") if path.is_file() and ROOT not in path.resolve().parents]
    assert len(files) > 10
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_run_that_is_killed_pays_for_no_reply_twice_and_ends_with_the_same_bytes(
    tiny_project, models, tmp_path, monkeypatch
):
    """The endpoint of this test never gives the same reply twice, so the kept replies alone can bring the bytes."""
    count = iter(range(1_000_000))

    def once(body: dict[str, Any]) -> str:
        return f"{models(body)} {next(count)}"

    publish, killed = RunFolder.publish, []

    def die_first(self, iteration, write):
        if iteration not in killed:
            killed.append(iteration)
            raise KeyboardInterrupt  # all of the iteration was asked, nothing of it is published
        publish(self, iteration, write)

    with serving(answer=once, models=("reward", "adapter")) as server:
        root = project(tiny_project, tmp_path / "killed")
        monkeypatch.setattr(RunFolder, "publish", die_first)
        for _ in range(small().train.iterations + 1):
            with pytest.raises(KeyboardInterrupt):
                train.train_arm(config(server), root, "full")
        asked = len(server.seen)
        monkeypatch.setattr(RunFolder, "publish", publish)
        train.train_arm(config(server), root, "full")
        assert len(server.seen) == asked, "the last start asks nothing"
        bodies = [json.dumps(body, sort_keys=True) for body in server.seen]
        assert len(set(bodies)) == len(bodies), "no request is sent twice"
    assert replay_report.replay_run(root / RUN, []).problem == ""
    assert replay_report.replay_run(root / RUN, [], play=True).problem == ""


def test_an_evaluation_asks_the_endpoint_in_the_place_of_the_reward_model(trained, models, tmp_path, capsys):
    root = tmp_path / "project"
    shutil.copytree(trained, root, symlinks=True)
    with serving(answer=models, models=("reward", "adapter")) as server:
        evaluate.evaluate_arm(config(server), root, "full")
        assert "evaluate: full: 1 seed\n" in capsys.readouterr().out
        assert {body["model"] for body in server.seen} == {"reward"}
        asked = len(server.seen)
        evaluate.evaluate_arm(config(server), root, "base")
        assert len(server.seen) == asked, "the same questions about the same panel are paid for once"
    assert "seeds" in json.loads(Layout(root).evaluation("full").read_text())


def test_a_wrong_model_or_key_ends_the_stage_before_any_work(tiny_project, tmp_path, monkeypatch):
    root = project(tiny_project, tmp_path / "project")
    monkeypatch.setattr(build, "load", lambda *_: pytest.fail("a model is loaded"))
    with serving(models=("reward", "adaptor")) as server:
        with pytest.raises(
            ConfigError, match=r"endpoints\.adapter\.model = 'adapter'.*did you mean 'adaptor'"
        ):
            train.train_arm(config(server), root, "full")
        server.key = "another"
        with pytest.raises(ConfigError, match=r"refuses the key") as refused:
            train.train_arm(config(server), root, "full")
        assert KEY not in str(refused.value)
        assert server.seen == []
        asking = config(server)
    with pytest.raises(MachineError, match=r"endpoints\.reward"):
        train.train_arm(asking, root, "full")


def test_an_arm_without_the_roles_asks_nobody(tiny_project, tmp_path, monkeypatch):
    monkeypatch.delenv("TEST_ENDPOINT_KEY")
    root = project(tiny_project, tmp_path / "project")
    with serving(models=()) as server:
        found = config(server)
    oracle = JudgeSource(source="oracle")
    arms = {"policy": found.arms["outcome"].model_copy(update={"judge": oracle})}
    train.train_arm(found.model_copy(update={"arms": arms}), root, "policy")
    assert contents(root / "runs/policy/seed-0")
