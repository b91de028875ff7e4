"""`buffer diff ARM ARM`: two arms over their seeds, with paired differences and the agreement of seeds beside them."""

import json
import shutil
from dataclasses import replace

import pytest
from buffer_cases import ACCEPTED, EASIER, HARDER, REJECTED, command, event, kitchen, record

from rlanything.buffer import TaskBuffer
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views import diff3
from rlanything.compare.buffers import diff_arms
from rlanything.report.results import statistics

SLOTS = 6
CHANGES = {
    "full": [([0, 1], [2]), ([0], [2]), ([1, 3], [])],
    "low/runs/full": [([0], [2, 4]), ([], [4]), ([1], [4, 5])],
}
"""Of each seed: the slots that were made harder, and those made easier."""


def beginning():
    return TaskBuffer.start(kitchen(n, "mug", "cabinet") for n in range(SLOTS))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project and its workspace `low`, three seeds each; every run also rejected a rewrite of its last slot."""
    start = beginning()
    for arm, seeds in CHANGES.items():
        for seed, (harder, easier) in enumerate(seeds):
            where = tmp_path / ("runs" if arm == "full" else ".rla") / arm / f"seed-{seed}" / "buffer"
            ways = [(slot, HARDER, 1.0) for slot in harder] + [(slot, EASIER, 0.0) for slot in easier]
            events = [
                event(
                    start, slot, ACCEPTED, kitchen(slot, "mug", way.value), way=way, before=before, after=0.5
                )
                for slot, way, before in ways
            ]
            last = event(start, 5, REJECTED, kitchen(5, "pan", "shelf"), way=HARDER, before=1.0, after=0.0)
            events = [replace(e, iteration=0) for e in (last, *events)]
            record(where, 0, start)
            record(where, 1, start.apply(events), events)
    for project in (tmp_path, tmp_path / ".rla/low"):
        (project / "params.yaml").write_text("adaptation: {alpha_low: 0.2, alpha_high: 0.8}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_row_for_each_seed_that_both_have(here):
    shutil.rmtree(here / ".rla/low/runs/full/seed-1")
    rows = diff_arms("full", "low:full")["seeds"]
    assert [row["seed"] for row in rows] == ["seed-0", "seed-2"]
    assert rows[0]["a"] == {"harder": 2, "easier": 1, "accepted": 3, "tried": 4, "in_band": None}
    assert rows[1]["b"] == {"harder": 1, "easier": 2, "accepted": 3, "tried": 4, "in_band": None}


def test_differences_are_those_of_the_reports_statistics(here):
    found = diff_arms("full", "low:full")["differences"]
    assert found.keys() == {"harder", "easier", "accepted"}, (
        "no rollouts are kept: no share inside the band is known"
    )
    cells = {
        "harder": [[-1.0], [-1.0], [-1.0]],
        "easier": [[1.0], [0.0], [2.0]],
        "accepted": [[0.0], [1 / 2 - 2 / 3], [3 / 4 - 2 / 3]],
    }
    p = {}
    for metric, values in cells.items():
        array = statistics.np.array(values)
        assert found[metric]["mean"] == pytest.approx(array.mean())
        spread = statistics.spread(array)
        if spread.variance == 0:
            assert found[metric]["low"] is found[metric]["p"] is None, (
                "three seeds that agree say not how far others lie"
            )
            continue
        assert spread.freedom == 2
        half = 4.302653 * spread.variance**0.5
        assert found[metric]["high"] - found[metric]["mean"] == pytest.approx(half, rel=1e-5)
        p[metric] = statistics.p_value(array)
    assert {metric: found[metric]["p"] for metric in p} == pytest.approx(statistics.holm(p))


def test_agreement_between_settings_stands_beside_that_between_seeds(here):
    page = diff_arms("full", "low:full")
    three = [
        diff3("full/seed-0@0", f"full/seed-{n}", f"low:full/seed-{n}")["agreement"]["kappa"] for n in range(3)
    ]
    assert page["kappa"]["between"] == three == [row["kappa"] for row in page["seeds"]]
    assert len(page["kappa"]["seeds_a"]) == len(page["kappa"]["seeds_b"]) == 3
    own = diff3("full/seed-0@0", "full/seed-0", "full/seed-1")["agreement"]["kappa"]
    assert page["kappa"]["seeds_a"][0] == own


def test_runs_that_begin_with_other_tasks_have_no_kappa(here, capsys):
    start = TaskBuffer.start(kitchen(n, "pan", "shelf") for n in range(SLOTS))
    folder = here / ".rla/low/runs/full/seed-2/buffer"
    shutil.rmtree(folder)
    record(folder, 0, start)
    record(folder, 1, start)
    page = diff_arms("full", "low:full")
    assert not page["one_start"]
    assert page["kappa"] == {"between": [None] * 3, "seeds_a": [], "seeds_b": []}
    assert command("diff", "full", "low:full") == 0
    assert "kappa: not computed" in capsys.readouterr().out


def test_the_command_prints_both_tables(here, capsys):
    assert command("diff", "full", "low:full") == 0
    out = capsys.readouterr().out
    assert out.startswith("A full\nB low:full\n")
    (row,) = (line.split("  ") for line in out.splitlines() if line.startswith("seed-1"))
    assert [cell.strip() for cell in row if cell.strip()][1:] == [
        "1",
        "0",
        "1",
        "1",
        "2 of 3",
        "1 of 2",
        "?",
        "?",
        "-0.20",
    ]
    assert "slots made easier           +1.0  [-1.5, +3.5]" in out
    assert command("diff", "runs/full", "low:full", "--json") == 0
    assert json.loads(capsys.readouterr().out)["a"] == "runs/full"


def test_what_is_no_comparison_of_arms_is_told(here, capsys):
    assert command("diff", "full", "low:full", "--md") == 2
    assert "--md: a comparison of two arms takes --json only" in capsys.readouterr().err
    with pytest.raises(TaskBufferError, match="full/seed-0 is no arm"):
        diff_arms("full/seed-0", "low:full")
    with pytest.raises(TaskBufferError, match=r"no run 'fulll'; nearest: full"):
        diff_arms("fulll", "low:full")
    shutil.rmtree(here / ".rla/low/runs/full/seed-0")
    for seed in (1, 2):
        shutil.rmtree(here / f"runs/full/seed-{seed}")
    with pytest.raises(
        TaskBufferError, match=r"full has seed-0, low:full has seed-1, seed-2: no seed in common"
    ):
        diff_arms("full", "low:full")
    shutil.rmtree(here / ".rla/low/runs/full/seed-1")
    assert command("diff", "full", "low:full") == 0, "one seed each: the runs themselves are compared"
    assert "difficulty:" in capsys.readouterr().out
