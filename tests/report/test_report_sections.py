"""Sections that not every report has: about endpoints, and about the sampler beside the trainer."""

from __future__ import annotations

from pathlib import Path

from rlanything.config import LearnConfig, parse
from rlanything.planning import compose
from rlanything.report import configuration, endpoints
from rlanything.report.document import SECTIONS
from rlanything.report.sections import mismatch, updates

ROOT = Path(__file__).parents[2]
ADAPTER = ("engine@endpoints.adapter=openai", "endpoints.adapter.model=m|1")
SERIES = {
    "replies": {0: 3.0, 1: 1.0},
    "prompt_tokens": {0: 100.0, 1: 1000.0},
    "reply_tokens": {0: 9.0},
    "empty": {0: 1.0},
}
RUN = {f"endpoint/adapter/{key}": series for key, series in SERIES.items()}
APART = {
    "mismatch_kl": {0: 1e-4, 1: 3e-4},
    "mismatch_max": {0: 0.25, 1: 0.5},
    "ratio_p01": {0: 0.9},
    "ratio_p50": {0: 1.0, 1: 1.0},
    "ratio_p99": {0: 1.1, 1: 1.3},
    "ratio_capped": {0: 0.0, 1: 0.01},
}
POLICY = {f"policy/{name}": series for name, series in APART.items()}
CALM = {name: dict.fromkeys(series, 0.0) for name, series in POLICY.items()}


def test_the_tokens_of_all_seeds_are_added_and_an_unknown_cost_is_no_zero():
    config = parse(compose.compose(ADAPTER, ROOT))
    page = endpoints.section(config, {"full": {0: RUN, 1: RUN}, "outcome": {0: {}}})
    assert page.splitlines()[-1] == "| `full`, adapter, `m\\|1` | 8 | 2,200 | 18 | 2 | – |"
    priced = RUN | {"endpoint/adapter/cost": {0: 0.25, 1: 0.5}}
    assert endpoints.section(config, {"full": {0: priced}}).splitlines()[-1].endswith("| 0.75 |")


def test_without_endpoints_there_is_no_section():
    assert endpoints.section(parse(compose.compose((), ROOT)), {"full": {0: RUN}}) == ""


def test_the_settings_name_the_model_and_not_the_address():
    rows = {row.name: row.value for row in configuration.rows(parse(compose.compose(ADAPTER, ROOT)))}
    assert rows["endpoints.adapter.model"] == "m|1"
    assert not any("api.openai.com" in value for value in rows.values())


def test_means_over_iterations_and_seeds_and_the_largest_difference_are_shown():
    learn = LearnConfig(importance_cap=3.0)
    page = mismatch.section({"full": {0: POLICY, 1: CALM}, "outcome": {0: {}}}, learn)
    assert page.splitlines()[-1] == "| `full`, policy | 0.0001 | 0.45 | 0.5 | 0.6 | 0.25% | 0.5 |"
    assert "above 3 (`learn.importance_cap`), which count as 3" in page


def test_a_model_has_a_row_of_its_own_and_a_missing_metric_is_no_zero():
    older = {"reward/mismatch_kl": {0: 0.5}, "reward/mismatch_max": {0: 1.0}}
    page = mismatch.section({"full": {0: POLICY | older}}, LearnConfig())
    assert page.splitlines()[-1] == "| `full`, reward model | 0.5 | – | – | – | – | 1 |"


def test_without_computing_again_there_is_no_section():
    assert mismatch.section({"full": {0: {"policy/kl": {0: 0.1}}}}, LearnConfig()) == ""
    assert mismatch.mismatch in SECTIONS


def test_with_a_mask_the_share_of_tokens_that_taught_nothing_is_shown():
    learn = LearnConfig(importance="recomputed", importance_mask=(0.5, 5.0))
    masked = POLICY | {"policy/ratio_masked": {0: 0.0, 1: 0.02}}
    page = mismatch.section({"full": {0: masked}}, learn)
    assert page.splitlines()[-1].endswith("| 0.50% | 1.00% | 0.5 |")
    assert "outside of 0.5 to 5 (`learn.importance_mask`)" in page


def test_updates_have_a_row_for_each_model_that_trained():
    run = {"policy/kl": {0: 0.01, 1: 0.03}, "policy/clipped": {0: 0.1, 1: 0.0}, "policy/grad_norm": {0: 2.0}}
    judged = run | {"reward/kl": {0: 0.5}}
    page = updates.section({"full": {0: judged, 1: run}, "base": {0: {}}}, 5, 0.3)
    assert page.splitlines()[-2:] == [
        "| `full`, policy | 0.02 | 5.00% | 2 |",
        "| `full`, reward model | 0.5 | – | – |",
    ]
    assert "takes 5 steps" in page
    assert "1 ± 0.3 (`learn.epsilon`)" in page
    assert updates.section({"base": {0: {}}}, 5, 0.3) == ""
    assert updates.updates in SECTIONS
