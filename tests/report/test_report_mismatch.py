"""The table about sampler and trainer: means over iterations and seeds, and no section without such metrics."""

from __future__ import annotations

from rlanything.report.document import SECTIONS
from rlanything.report.sections.mismatch import mismatch, section

SERIES = {
    "mismatch_kl": {0: 1e-4, 1: 3e-4},
    "mismatch_max": {0: 0.25, 1: 0.5},
    "ratio_p01": {0: 0.9},
    "ratio_p50": {0: 1.0, 1: 1.0},
    "ratio_p99": {0: 1.1, 1: 1.3},
    "ratio_capped": {0: 0.0, 1: 0.01},
}
POLICY = {f"policy/{name}": series for name, series in SERIES.items()}
CALM = {name: dict.fromkeys(series, 0.0) for name, series in POLICY.items()}


def test_means_over_iterations_and_seeds_and_the_largest_difference_are_shown():
    page = section({"full": {0: POLICY, 1: CALM}, "outcome": {0: {}}}, 2.0)
    assert page.splitlines()[-1] == "| `full`, policy | 0.0001 | 0.45 | 0.5 | 0.6 | 0.25% | 0.5 |"
    assert "above 2 (`learn.importance_cap`), which count as 2" in page


def test_a_model_has_a_row_of_its_own_and_a_missing_metric_is_no_zero():
    older = {"reward/mismatch_kl": {0: 0.5}, "reward/mismatch_max": {0: 1.0}}
    page = section({"full": {0: POLICY | older}}, 2.0)
    assert page.splitlines()[-1] == "| `full`, reward model | 0.5 | – | – | – | – | 1 |"


def test_without_computing_again_there_is_no_section():
    assert section({"full": {0: {"policy/kl": {0: 0.1}}}}, 2.0) == ""
    assert mismatch in SECTIONS
