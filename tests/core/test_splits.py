"""The names of splits and panels: what is reserved is what results, files and metrics are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.splits import FAMILIAR, SPLITS
from rlanything.core.splits import PANEL_NAME, RESERVED, TRAIN, keyed, on_panel
from rlanything.report.exports import CURVES
from rlanything.report.results.evaluations import DETAILS
from rlanything.report.results.metrics import DECLARED
from rlanything.sweep.declare.metrics import COST


def test_the_worlds_have_a_split_to_train_on_and_know_what_is_familiar():
    assert SPLITS[0] == TRAIN
    assert set(FAMILIAR) < set(SPLITS)


@pytest.mark.parametrize("names", [DECLARED, DETAILS, CURVES.values(), [TRAIN, COST]])
def test_no_panel_takes_a_name_of_the_results(names):
    assert set(names) <= RESERVED


def test_the_worlds_own_panels_are_no_reserved_names():
    assert not set(SPLITS) - {TRAIN} & RESERVED
    assert all(PANEL_NAME.fullmatch(name) for name in SPLITS)


@given(st.lists(st.from_regex(PANEL_NAME, fullmatch=True), min_size=1, max_size=4, unique=True))
def test_metrics_of_different_panels_never_share_a_name(panels):
    found = [name for panel in panels for name in keyed({"ut": 0, "detect": 1}, panel, panels)]
    assert len(set(found)) == 2 * len(panels)
    assert (on_panel("ut", panels[0], panels) == "ut") is (len(panels) == 1)
