"""Reading inputs: what is missing is left out, what is broken stops with the file and the command that makes it."""

from __future__ import annotations

import json
import re

import pytest
from report_cases import config, evaluation, metrics, project, write_evaluation, write_metrics

from rlanything.files import reader
from rlanything.report.results.arms import ordered
from rlanything.report.results.curves import read_curves
from rlanything.report.results.details import read_extras
from rlanything.report.results.evaluations import ReportError, read_evaluations
from rlanything.report.results.statistics import estimate

ARMS = tuple(config().arms)


def test_arms_come_in_the_order_of_the_tables():
    assert ordered(["zeta", "full", "alpha", "base", "policy"]) == ["base", "policy", "full", "alpha", "zeta"]


def test_an_arm_that_was_not_run_is_left_out(tmp_path):
    project(tmp_path, ("base", "full"))
    assert list(read_evaluations(tmp_path, ARMS)) == ["base", "full"]
    assert list(read_curves(tmp_path, ARMS)) == ["full"]


def test_without_the_base_there_is_no_report(tmp_path):
    with pytest.raises(ReportError, match=r"evaluation/base\.json: no such file.*dvc repro evaluate"):
        read_evaluations(tmp_path, ARMS)


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        ("", "not valid JSON"),
        ('{"arm": "full", "seeds": {"0": {', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "full.json: Input should be"),
        ('{"arm": "full"}', "seeds: Field required"),
        ('{"arm": "full", "seeds": {}}', "seeds: "),
        ('{"arm": "policy", "seeds": {"0": {}}}', "holds arm 'policy', not 'full'"),
        ('{"arm": "full", "seeds": {"one": {}}}', "seeds.one"),
        ('{"arm": "full", "seeds": {"0": {"in_domain": {"t": [0, 2]}}}}', "seeds.0.in_domain.t.1"),
        ('{"arm": "full", "seeds": {"0": {"in_domain": {"t": [NaN]}}}}', "seeds.0.in_domain.t.0"),
        ('{"arm": "full", "seeds": {"0": {"rm_outcome": {"t": [3, 2]}}}}', "3 hits of 2"),
        (
            '{"arm": "full", "seeds": {"0": {"rm_outcome": {"t": [3]}}}}',
            "seeds.0.rm_outcome.t.1: Field required",
        ),
        (
            '{"arm": "full", "seeds": {"0": {"rm_process": {"t": {"good": [-1, 2]}}}}}',
            "seeds.0.rm_process.t.good.0",
        ),
        (
            f'{{"arm": "full", "seeds": {{"0": {{"accepted_tasks": 1{"0" * 400}}}}}}}',
            "seeds.0.accepted_tasks: ",
        ),
        (
            f'{{"arm": "full", "seeds": {{"0": {{"rm_outcome": {{"t": [0, 1{"0" * 400}]}}}}}}}}',
            "seeds.0.rm_outcome.t.1: Input should be less than or equal to 1000000000000000",
        ),
    ],
)
def test_a_broken_evaluation_is_named(tmp_path, content, trouble):
    project(tmp_path, ("base",))
    (tmp_path / "evaluation" / "full.json").write_text(content)
    with pytest.raises(ReportError) as caught:
        read_evaluations(tmp_path, ARMS)
    assert str(caught.value).startswith("evaluation/full.json: ")
    assert trouble in str(caught.value)
    assert "dvc repro evaluate" in str(caught.value)


def test_an_evaluation_that_is_too_large_is_not_to_be_made_again(tmp_path, monkeypatch):
    project(tmp_path)
    path = tmp_path / "evaluation" / "full.json"
    path.write_text(path.read_text() + " " * (2 << 20))
    monkeypatch.setattr(reader.read_bytes, "__defaults__", (1,))  # megabytes
    with pytest.raises(ReportError, match=r"full.json: .* more than 1 MB.*raises the limit$"):
        read_evaluations(tmp_path, ARMS)


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        (b'{"iteration": 1, "mu"', "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[1]", "no iteration number"),
        (b'{"mu": 1}', "no iteration number"),
        (b'{"iteration": NaN}', "no iteration number"),
    ],
)
def test_a_broken_line_of_metrics_is_named(tmp_path, line, trouble):
    path = write_metrics(tmp_path, "full", 0, metrics("full", 0, 2))
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(ReportError) as caught:
        read_curves(tmp_path, ARMS)
    assert str(caught.value).startswith("runs/full/seed-0/metrics.jsonl, line 4: ")
    assert trouble in str(caught.value)
    assert "dvc repro train" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "trouble"),
    [
        ('"iteration": 3, "accepted": Infinity', "iteration 3: 'accepted' is Infinity; it must be a number"),
        ('"iteration": 3, "mu": -1e300', "iteration 3: 'mu' is -1e+300; it must be a number"),
        (f'"iteration": 3, "votes": 1{"0" * 400}', "iteration 3: 'votes' is 1000000000"),
        (
            '"iteration": 1000000000000',
            "'iteration' is 1000000000000; it must be a whole number from 0 to 1e+09",
        ),
        ('"iteration": -1', "'iteration' is -1; it must be a whole number"),
        ('"iteration": true', "'iteration' is true; it must be a number"),
    ],
)
def test_a_number_that_no_run_has_is_named(tmp_path, values, trouble):
    path = write_metrics(tmp_path, "full", 0, metrics("full", 0, 2))
    path.write_bytes(path.read_bytes() + f"{{{values}}}\n".encode())
    with pytest.raises(ReportError) as caught:
        read_curves(tmp_path, ARMS)
    assert str(caught.value).startswith(f"runs/full/seed-0/metrics.jsonl, line 4: {trouble}")
    assert str(caught.value).endswith("; make it again with `dvc repro train`")


def test_what_was_not_measured_has_no_point_and_a_repeated_iteration_counts_once(tmp_path):
    lines = [
        {"iteration": 1, "mu": float("nan"), "accuracy": None, "note": "text", "accepted_total": 3},
        {"iteration": 0, "mu": 1.1},
        {"iteration": 1, "mu": 1.2},
    ]
    write_metrics(tmp_path, "full", 10, lines)
    write_metrics(tmp_path, "full", 9, lines[1:2])
    (tmp_path / "runs" / "full" / "seed-tmp").mkdir()
    curves = read_curves(tmp_path, ARMS)
    assert list(curves["full"]) == [9, 10]
    assert curves["full"][10] == {"mu": {0: 1.1, 1: 1.2}}


def test_crashed_repeats_do_not_count_and_tasks_weigh_the_same(tmp_path):
    data = {"arm": "base", "seeds": {"0": {"in_domain": {"a": [1, None, None], "b": [0, 0, 0], "c": []}}}}
    write_evaluation(tmp_path, data)
    panel = read_evaluations(tmp_path, ARMS)["base"]["in_domain"]
    assert panel.tasks == ("a", "b")
    assert estimate(panel).mean == 0.5


def test_metrics_that_were_not_measured_are_absent(tmp_path):
    data = evaluation("base")
    for result in data["seeds"].values():
        del result["rm_process"]
        result["accepted_tasks"] = None
    write_evaluation(tmp_path, data)
    found = read_evaluations(tmp_path, ARMS)["base"]
    assert set(found) == {"in_domain", "out_of_domain", "rm_pairwise", "rm_outcome"}


def test_seeds_are_sorted_as_numbers(tmp_path):
    data = evaluation("base", seeds=11)
    write_evaluation(tmp_path, json.loads(json.dumps(data)))
    assert read_evaluations(tmp_path, ARMS)["base"]["in_domain"].seeds == tuple(range(11))


def test_files_without_the_details_are_read(tmp_path):
    project(tmp_path, ("base", "full"))
    for arm in ("base", "full"):
        path = tmp_path / "evaluation" / f"{arm}.json"
        data = json.loads(path.read_text())
        for result in data["seeds"].values():
            del result["success_within"]
            result.pop("solvable", None)
        path.write_text(json.dumps(data))
    extras = read_extras(tmp_path, ARMS)
    assert (extras.within, extras.judged, extras.solved) == ({}, {}, {})
    assert "rm_process_plain" in read_evaluations(tmp_path, ARMS)["full"]


def test_success_within_is_read_for_every_seed_that_was_measured_everywhere(tmp_path):
    seeds = {
        "0": {"success_within": {"in_domain": [0.0, 0.5]}},
        "1": {"success_within": {"in_domain": [0.25, None]}},
        "2": {"success_within": {"in_domain": [0.25, 0.75]}},
    }
    write_evaluation(tmp_path, {"arm": "base", "seeds": seeds})
    assert read_extras(tmp_path, []).within == {"base": {"in_domain": [[0.0, 0.5], [0.25, 0.75]]}}


@pytest.mark.parametrize(
    ("result", "place"),
    [
        ({"success_within": {"in_domain": [1.5]}}, "seeds.0.success_within.in_domain.0"),
        ({"solvable": {"t": [2]}}, "seeds.0.solvable.t.0"),
        ({"crashed": {"in_domain": -1}}, "seeds.0.crashed.in_domain"),
        (
            {"labels": {"j": {"rm_process": {"t": {"good": [3, 2]}}, "left_out": {}}}},
            "seeds.0.labels.j.rm_process.t",
        ),
    ],
)
def test_details_that_cannot_be_are_refused_with_their_place(tmp_path, result, place):
    write_evaluation(tmp_path, {"arm": "base", "seeds": {"0": result}})
    with pytest.raises(ReportError, match=rf"evaluation/base\.json: {re.escape(place)}.*make it again"):
        read_extras(tmp_path, [])
