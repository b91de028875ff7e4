"""Sentences, warnings, settings and tables; text from outside stays text."""

from __future__ import annotations

import io
import json
import re
from statistics import fmean

import pytest
from report_cases import config, evaluation, judged, project, write_evaluation
from rich.console import Console

from rlanything.report import configuration, document, findings, formatting, health, tables
from rlanything.report.contents import contents_of
from rlanything.report.report_data import gather
from rlanything.report.results.comparison import Cell
from rlanything.report.results.curves import Peak, peaks
from rlanything.report.results.metrics import named
from rlanything.report.results.paper import ALFWORLD
from rlanything.report.results.statistics import Contrast, Estimate, corrected
from rlanything.report.sections.solved import solved

VOTES = contents_of(config())
IN_DOMAIN, ACCEPTED, PROCESS = (named(name) for name in ("in_domain", "accepted_tasks", "rm_process_plain"))
EVIL = "a|b`c<script>\n[link](http://x) \x1b[31m**"


def run_of(values: dict[str, list[float]]) -> dict[str, dict[int, float]]:
    return {key: dict(enumerate(series)) for key, series in values.items()}


def test_numbers_in_the_metrics_unit():
    assert formatting.number(0.5123, IN_DOMAIN) == "51.2"
    assert formatting.number(12.0, ACCEPTED) == "12.0"
    assert formatting.number(-0.0001, IN_DOMAIN, sign=True) == "+0.0"
    assert formatting.interval(Estimate(0.12, 0.08, 0.16), IN_DOMAIN, sign=True) == "+12.0 [+8.0, +16.0]"
    assert formatting.interval(Estimate(3.0, None, None), ACCEPTED) == "3.0"
    assert formatting.interval(None, IN_DOMAIN) == formatting.number(None, IN_DOMAIN) == "–"
    assert [formatting.p_text(p) for p in (None, 0.0002, 0.04)] == ["–", "<0.001", "0.040"]
    assert [formatting.p_text(p) for p in (0.0502, 0.04996, 0.05)] == ["0.0502", "0.04996", "0.050"]


def test_code_spans_hold_anything():
    span = formatting.code(EVIL)
    assert span.startswith("`a\\|b")
    assert span.count("`") == 2
    assert "\n" not in span
    assert "\x1b" not in span
    assert formatting.code("") == "` `"
    assert len(formatting.plain("x" * 900)) == 200


def test_the_papers_table():
    assert ALFWORLD.gain("full", IN_DOMAIN) == pytest.approx(0.212)
    assert ALFWORLD.gain("full", PROCESS, "policy_reward") == pytest.approx(0.04)
    assert ALFWORLD.value("outcome", IN_DOMAIN) is None
    assert ALFWORLD.gain("outcome", IN_DOMAIN) is None
    assert "v1" in ALFWORLD.source


def test_sentences_follow_the_numbers(tmp_path):
    comparison = gather(config(), project(tmp_path)).comparison
    assert (
        "`outcome` is above `base` in-domain, but not clearly: difference +21.8 ["
        in findings.against_base(comparison, ALFWORLD)[0]
    )
    beyond = findings.against_outcome(comparison, ALFWORLD)
    assert [line.split()[0] for line in beyond] == ["`policy`", "`policy_reward`", "`full`"] * 2
    assert all("`outcome` in-domain" in line for line in beyond[:3])
    assert all("paper" not in line for line in beyond)  # its table has no such arm
    below = next(
        line
        for line in findings.ladder(comparison, ALFWORLD)
        if line.startswith("`full` is below `policy_reward`")
    )
    assert "but not clearly" in below
    assert "(paper: +4.6)" in below
    assert findings.order(comparison, VOTES)[0].startswith(
        "Accuracy in-domain: not the paper's order: `base` 38.0 < "
    )
    assert findings.order(comparison, VOTES)[2].startswith(
        "RM process accuracy: the paper's order: `base` 65.6 = `policy` 65.6"
    )


def test_a_step_is_clear_by_the_corrected_p(tmp_path):
    """The same difference is clear alone and not among others that are chance."""
    found = Contrast(Estimate(0.2, 0.01, 0.39), 0.04)
    assert found.clear
    assert not corrected({"this": found, "that": Contrast(Estimate(0.0, -0.2, 0.2), 1.0)})["this"].clear


def test_a_curve_that_ends_below_its_peak_is_mentioned():
    found = findings.declines(
        {"full": {"in_domain": Peak(0.6, 10, 0.5), "out_of_domain": Peak(0.5, 10, 0.49)}}, VOTES
    )
    assert len(found) == 1
    assert "10.0 points below its peak of iteration 10" in found[0]


def test_peaks_take_the_mean_over_seeds_where_all_have_measured():
    curves = {
        "full": {
            0: run_of({"panel/in_domain": [0.4, 0.6, 0.5, 0.9]}),
            1: run_of({"panel/in_domain": [0.4, 0.5, 0.6]}),
        },
        "policy": {0: {"panel/rm_process": {0: 0.7}}},
    }
    assert peaks(curves, VOTES.shares) == {
        "full": {"in_domain": Peak(pytest.approx(0.55), 1, pytest.approx(0.55))}
    }


HEALTHY = {"mu": [1.2] * 20, "mean_vote": [0.1] * 20, "accuracy": [0.4] * 20, "band_coverage": [0.5] * 20}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mu": [1.2] * 10 + [0.9] * 10}, "mu was at most 1 in 10 of 20 iterations (last 5: 0.90)"),
        ({"invalid_votes": [0.3] * 20}, "30% of the votes had no verdict"),
        ({"unanimous": [0.95] * 20}, "95% of the steps had unanimous votes"),
        ({"invalid_tests": [0.2] * 20}, "20% of the replies held no readable test"),
        ({"ut": [0.3] * 15 + [0.01] * 5, "detect": [0.0] * 20}, "only 1% of the tests were right at the end"),
        (
            {"ut": [0.8] * 20, "detect": [0.4] * 15 + [0.1] * 5},
            "80% of the tests were right at the end, but only 10%",
        ),
        ({"task_force_ratio": [1.0] * 10 + [20.0] * 10}, "almost only from successes"),
        ({"task_force_ratio": [0.01] * 20}, "almost only from failures"),
        ({"one_sided_tasks": [0.2] * 10 + [0.75] * 10}, "75% of the tasks were one-sided"),
        ({"band_coverage": [0.1] * 20}, "only 10% of the tasks"),
        ({"proposals": [4] * 20, "invalid_proposals": [0.75] * 20}, "60 of 80 proposals were invalid"),
        (
            {"accepted_total": [1, 2, 3, 4, 5, 6, 6, 6]},
            "no task was accepted in the last 2 iterations (6 before)",
        ),
        (
            {"mean_vote": [0.0] * 10 + [0.5] * 10, "accuracy": [0.5] * 10 + [0.3] * 10},
            "please the reward model",
        ),
        ({"policy_trajectories": [0.0, 5.0] * 10}, "nothing to learn from in 10 of 20"),
        ({"status/env_error": [0, 2], "status/timeout": [1]}, "3 episodes crashed or timed out"),
        ({"context_full": [0.0, 0.5]}, "25% of the episodes were cut off and count as failures"),
        ({"policy/kl": [0.01, 0.5]}, "a KL of 0.50 in iteration 1"),
        ({"policy/ratio_capped": [0.05] * 20}, "5% of the policy's importance ratios were cut"),
        (
            {"policy/ratio_capped": [0.05] * 20, "staleness": [0.0, *[1.0] * 19]},
            "(last 5: 5%). The samples were an iteration old (train.staleness).",
        ),
        ({"reward/ratio_capped": [0.03] * 20}, "3% of the reward model's importance ratios were cut"),
        ({"reward/ratio_masked": [0.03] * 20}, "3% of the reward model's tokens taught nothing"),
        (
            {"policy/ratio_masked": [0.05] * 20, "staleness": [1.0] * 20},
            "an iteration old (train.staleness).",
        ),
    ],
)
def test_each_trouble_is_said_in_words(changes, said):
    found = health.warnings({"full": {3: run_of(HEALTHY | changes)}})["full"]
    assert len(found) == 1
    assert found[0].startswith("seed 3: ")
    assert said in found[0]


def test_a_healthy_or_empty_run_gives_no_warning():
    assert health.warnings({"full": {0: run_of(HEALTHY), 1: {}}}) == {"full": []}


def test_settings_show_what_differs_and_no_options_of_env_or_engine():
    rows = {row.name: row for row in configuration.rows(config())}
    changed = rows["signals.lambda"]
    assert (changed.value, changed.reference, changed.place) == ("0.5", "1.0", "paper, 2.1")
    assert changed.differs
    assert not rows["learn.policy.lr"].differs
    assert rows["adaptation.max_tokens"].place == "reference code, sample/alfworld_rl_rollout.py"
    assert not rows["train.seeds"].differs, "neither the paper nor its code has a number"
    assert rows["train.seeds"].source.startswith("ours: ")
    assert not any("do not print" in row.value for row in rows.values())


def test_settings_show_no_options_of_loggers():
    logger = {"mine": {"_target_": "lightning.pytorch.loggers.CSVLogger", "save_dir": "do not print"}}
    rows = configuration.rows(config(train={"iterations": 24, "seeds": 3, "loggers": logger}))
    assert not any("do not print" in row.value for row in rows)


def test_terminal_table_fits_eighty_columns_and_takes_names_literally():
    value = Estimate(0.512, 0.48, 0.541)
    row = {
        "in_domain": Cell(value, Contrast(Estimate(-0.321, -0.399, -0.201), 0.01)),
        "accepted_tasks": Cell(value, Contrast(value, None)),
    }
    console = Console(file=io.StringIO(), width=80)
    console.print(tables.terminal({"base": row, "policy_reward": row, "[bold]x": row}, VOTES))
    for table in tables.terminal_peaks({"[red]y": {"in_domain": Peak(0.5, 100, 0.4)}}, VOTES):
        console.print(table)
    shown = console.file.getvalue()
    assert "[bold]x" in shown
    assert "[red]y" in shown
    assert "-32.1 [-39.9, -20.1]" in shown
    assert "+16.6" in shown
    assert "optimistic, not the result" in " ".join(shown.split())
    assert "…" not in shown


def test_text_from_outside_is_harmless_in_the_document(tmp_path):
    name = "x`<b>$\\frac"
    arms = {name: {"step_votes": True, "train_reward": True, "adapt": True}}
    changed = config(arms=arms, scale=EVIL)
    project(tmp_path, ("base", name))
    page = document.report_md(gather(changed, tmp_path))
    bare = re.sub("`[^`\n]*`", "", page)
    assert formatting.code(EVIL) in page
    assert not any(piece in bare for piece in ("<b>", "<script>", "http://x", "\x1b", "frac"))


def test_two_judges_stand_side_by_side_with_the_papers(tmp_path):
    for arm, shift in (("base", 0), ("full", 1)):
        data = evaluation(arm, seeds=2)
        for result in data["seeds"].values():
            result["labels"] = {"strong": judged(3 + shift, 1), "`weak`": judged(2 + shift, 2)}
        write_evaluation(tmp_path, data)
    judges = {"strong": {"path": "x/y"}, "`weak`": {"path": "x/z", "votes": 4}}
    page = document.report_md(gather(config(evaluate={"labels": "judge", "judges": judges}), tmp_path))
    table = page[page.index("### Process accuracy by judge") :]
    assert "| labels |  | `base` | `full` |" in table
    assert "| `strong` | plain | 50.0" in table
    assert "| `strong` | balanced | 50.0" in table
    assert "| `ˋweakˋ` | balanced | 66.7" in table
    assert "| paper: gpt-oss-20b | plain | 40.5 | 52.2 |" in table
    assert "- `strong`: 8 steps labelled; left out: 1 ties, 2 invalid, 0 unasked" in table
    assert (
        "The labels of steps are from the majority of 8 votes of `strong`; the steps are the untrained"
        in page
    )


def test_the_report_says_whose_steps_and_labels_they_are(tmp_path):
    project(tmp_path, ("base",))
    page = document.report_md(gather(config(), tmp_path))
    assert "from the environment's oracle; the steps are the untrained policy's." in page
    assert "by judge" not in page
    other = config(evaluate={"reward_policy": {"path": "some/model"}})
    assert "the steps are `some/model`'s." in document.report_md(gather(other, tmp_path))


def test_another_policys_steps_stand_beside_table_4(tmp_path):
    project(tmp_path, ("base", "policy", "policy_reward", "full"))
    page = document.report_md(gather(config(evaluate={"reward_policy": {"path": "some/model"}}), tmp_path))
    assert "Table 1 (ALFWorld); process accuracy: Table 4; " in page
    assert "its Table 4, on steps of LLaMA-3.1-8B-Instruct." in page
    overview = page[page.index("| arm | ") :].split("\n\n")[0].splitlines()
    header = overview[0].split(" | ")
    columns = [header.index("RM process accuracy") + 1, header.index("Accuracy in-domain") + 1]
    beside = {
        row.split(" | ")[0].strip("| `"): [row.split(" | ")[i] for i in columns] for row in overview[2:]
    }
    assert beside == {
        "base": ["56.5", "39.0"],
        "policy": ["56.5", "51.1"],
        "policy_reward": ["67.1", "55.6"],
        "full": ["72.7", "60.2"],
    }
    assert header[header.index("RM outcome accuracy") + 1] != "paper"
    outcome = page[page.index("### RM outcome accuracy") :].split("\n### ")[0].splitlines()
    assert {tuple(row.split(" | ")[-2:]) for row in outcome if row.startswith("| `")} == {("–", "– |")}


def test_judges_of_another_policys_steps_stand_beside_table_4(tmp_path):
    data = evaluation("base", seeds=2)
    for result in data["seeds"].values():
        result["labels"] = {"strong": judged(3, 1)}
    write_evaluation(tmp_path, data)
    evaluate = {
        "labels": "judge",
        "judges": {"strong": {"path": "x/y"}},
        "reward_policy": {"path": "some/model"},
    }
    page = document.report_md(gather(config(evaluate=evaluate), tmp_path))
    table = page[page.index("### Process accuracy by judge") :].partition("\n## ")[0]
    assert "v1, Table 4 (ALFWorld), plain." in table
    assert "| paper: LLaMA-3.1-8B-Instruct's steps | plain | 56.5 |" in table
    assert "Qwen3-32B" not in table


def test_solved_tasks_are_counted_over_the_seeds(tmp_path):
    page = document.report_md(gather(config(), project(tmp_path, ("base", "full"))))
    counts = [
        json.loads((tmp_path / "evaluation" / "full.json").read_text())["seeds"][str(s)] for s in range(3)
    ]
    tries = [t for result in counts for t in result["solvable"].values()]
    tried = [t for t in tries if t]
    told = f"`full`: the environment's expert solves {sum(map(any, tried))} of {len(tried)} accepted tasks"
    assert told in page
    assert "with as many steps as it needs (" in page
    assert f"policies are measured within {config().evaluate.max_steps} (`evaluate.max_steps`)" in page
    assert f"Left out: {len(tries) - len(tried)} that it could not try." in page
    assert "`base`: the environment's expert" not in page
    assert "A single try solves" not in page, "an expert stops at its first success"
    by_model = solved(gather(config(evaluate={"solver": {"path": "other"}}), tmp_path))
    assert f"A single try solves {100 * fmean(map(fmean, tried)):.1f} %." in by_model
