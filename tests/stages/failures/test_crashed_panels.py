"""Panels in which episodes crash: their number is said and written, and a panel without any other ends the stage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted import prompts, rollout_worker, task, winning
from stage_cases import small

from rlanything.core.errors import MachineError
from rlanything.files.records import write_lines
from rlanything.rewards.panel import try_tasks
from rlanything.runs.layout import Layout
from rlanything.stages import cooling, label
from rlanything.stages.bootstrap import stage
from rlanything.stages.crashes import without_crashed
from rlanything.stages.policy_panels import policy_results

RESET, STEP = "raise in reset", "raise in step"


def panels(root, in_domain=("", ""), out_of_domain=("", "")) -> Layout:
    """A project with two panels of scripted tasks, one for each fault."""
    layout = Layout(root)
    for name, faults in (("in_domain", in_domain), ("out_of_domain", out_of_domain)):
        write_lines(layout.tasks(name), [made(k, fault).to_json() for k, fault in enumerate(faults)])
    return layout


def made(level: int, fault: str):
    return task(level, **({"fault": fault} if fault else {}))


def acting():
    return rollout_worker(winning(dict.fromkeys(range(9), 3)))


def test_an_evaluation_counts_and_says_what_it_leaves_out(tmp_path, capsys):
    config = small("evaluate.repeats=2")
    layout = panels(tmp_path, in_domain=("", RESET, STEP))
    found = policy_results(config, layout, acting(), 5)
    assert found["crashed"] == {"in_domain": 4}
    assert [len(results) for results in found["in_domain"].values()] == [2, 0, 0]
    assert [len(steps) for steps in found["episode_steps"]["in_domain"].values()] == [2, 0, 0]
    said = capsys.readouterr().out
    assert said.startswith(
        "evaluate: in_domain: 4 of 6 episodes crashed or timed out and are left out; the first"
    )
    assert said.count("\n") == 1


def test_without_crashes_a_file_has_nothing_of_them(tmp_path, capsys):
    found = policy_results(small(), panels(tmp_path), acting(), 5)
    assert set(found) == {"in_domain", "out_of_domain", "episode_steps", "success_within"}
    assert stage._solved(small(), Layout(tmp_path), acting()) == {"in_domain": 1.0, "out_of_domain": 1.0}
    assert capsys.readouterr().out == ""


def test_a_panel_whose_every_episode_crashed_ends_the_stage(tmp_path):
    layout = panels(tmp_path, out_of_domain=(RESET, STEP))
    said = r"out_of_domain: \d episodes: all of them crashed or timed out, so nothing was measured; the first error: ."
    with pytest.raises(MachineError, match=f"evaluate: {said}"):
        policy_results(small(), layout, acting(), 5)
    with pytest.raises(MachineError, match=f"bootstrap: {said}"):
        stage._solved(small(), layout, acting())


def test_the_base_models_are_measured_with_the_number_of_crashes(tmp_path, capsys):
    layout = panels(tmp_path, in_domain=("", RESET))
    found = stage._solved(small(), layout, acting())
    assert found == {"in_domain": 1.0, "crashed/in_domain": 1.0, "out_of_domain": 1.0}
    assert capsys.readouterr().out.startswith("bootstrap: in_domain: 1 of 2 episodes crashed")


def test_tries_for_the_reward_panel_are_counted_as_well():
    config = small("evaluate.reward_rollouts=2")
    tried = try_tasks(config, [made(0, ""), made(1, RESET)], acting())
    assert [t.counts for t in tried] == [True, True, False, False]
    kept, crashed = without_crashed("bootstrap: reward_panel", tried)
    assert (kept, crashed) == (tried[:2], 2)
    with pytest.raises(MachineError, match="reward_panel: 2 episodes: all of them crashed"):
        without_crashed("bootstrap: reward_panel", tried[2:])
    assert without_crashed("bootstrap: reward_panel", []) == ([], 0)


def test_what_an_environment_said_is_printed_on_one_line_without_hidden_characters(capsys):
    tried = try_tasks(small("evaluate.reward_rollouts=1"), [made(0, ""), made(1, RESET)], acting())
    broken = replace(tried[1], error="\x1b[31mred\nnext\u202e")
    assert without_crashed("x", [tried[0], broken]).crashed == 1
    assert capsys.readouterr().out.endswith("the first error: \\x1b[31mred next\\u202e\n")
    with pytest.raises(MachineError, match=r"the first error: \\x1b\[31mred next\\u202e$"):
        without_crashed("x", [broken])


class Evaluation:
    """Makes a panel of which only the names of its tasks are kept."""

    def panel(self, tasks, tried):
        return [{"task": t.task_id} for t in tried]

    def assess(self, panel):
        return type("First", (), {"metrics": {"mu": 1.5}, "objection": ""})

    def evaluation(self, *_):
        return self


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose reward panel has a task that crashes, played and judged by stand-ins."""
    layout = panels(tmp_path)
    write_lines(layout.tasks("reward_panel"), [made(0, "").to_json(), made(1, STEP).to_json()])
    for module in (stage, label):
        monkeypatch.setattr(module, "kind_of", lambda _: Evaluation())
    monkeypatch.setattr(stage.build, "prompts", lambda *_: prompts())
    monkeypatch.setattr(stage.build, "family", lambda _: acting().family)
    return layout


def test_a_reward_panel_says_what_it_lacks_in_bootstrap_json(project, monkeypatch):
    monkeypatch.setattr(stage, "RolloutWorker", lambda *_: acting())
    config = small("evaluate.reward_rollouts=3")
    found, objections = stage._measure(config, project.root, project, None, None, None)
    assert found["crashed/reward_panel"] == 3.0
    assert not objections
    assert "crashed/in_domain" not in found


def test_a_temperature_at_which_some_crash_says_so(tmp_path, monkeypatch, capsys):
    worker = type("Opened", (), {"__enter__": lambda _: acting(), "__exit__": lambda *_: None})
    monkeypatch.setattr(cooling, "_worker", lambda *_: worker())
    data = small().model_dump(by_alias=True)
    tasks = [made(0, "").to_json(), made(1, RESET).to_json()]
    assert cooling.try_temperature(data, tmp_path, {}, 0.5, tasks, 2) == 1.0
    assert capsys.readouterr().out.startswith("evaluate.cooling: temperature 0.5: 2 of 4 episodes crashed")
