"""What the points of the learning curves say about rewriting and performance over a training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlanything.checks.adaptation.course import Point, measured, moments, slope, trends
from rlanything.report.formatting import p_text

ARMS = ("full", "policy_reward")
ROOT = Path(__file__).parents[2]


def point(iteration: int, replaced: int, arm: float, against: float) -> Point:
    """A point of a run with 20 slots and one panel."""
    return Point(
        iteration=iteration,
        slots=20,
        replaced=replaced,
        words=0.1 * replaced / 20,
        embedding=0.0,
        success={"full": {"seen": arm}, "policy_reward": {"seen": against}},
    )


def course(last: float) -> list[Point]:
    """A run whose difference between the arms grows in a straight line to `last`, with half of the slots."""
    return [point(0, 0, 0.3, 0.3), point(5, 5, 0.4 + last / 2, 0.4), point(10, 10, 0.4 + last, 0.4)]


@given(st.floats(-2, 2), st.lists(st.floats(0.01, 1), min_size=1, max_size=6))
def test_the_slope_of_points_on_a_line_through_the_origin_is_the_lines(rise, x):
    assert slope(x, [rise * value for value in x]) == pytest.approx(rise, abs=1e-12)


@given(st.lists(st.tuples(st.floats(0.1, 1), st.floats(-1, 1)), min_size=1, max_size=6), st.floats(-3, 3))
def test_no_other_line_through_the_origin_is_nearer(points, other):
    x, y = zip(*points, strict=True)

    def squares(rise: float) -> float:
        return sum((b - rise * a) ** 2 for a, b in points)

    assert squares(slope(x, y)) <= squares(other) + 1e-12


def test_without_a_rewrite_there_is_no_slope():
    assert slope([0.0, 0.0], [0.0, 0.1]) is None
    (trend,) = trends({0: [point(0, 0, 0.3, 0.3), point(5, 0, 0.4, 0.2)]}, ARMS)
    assert trend.slope is None


def test_the_moments_are_means_over_seeds():
    found = moments({0: course(0.1), 1: course(-0.3)}, ARMS)
    assert [moment.iteration for moment in found] == [0, 5, 10]
    assert [moment.replaced.mean for moment in found] == pytest.approx([0.0, 0.25, 0.5])
    assert [moment.words.mean for moment in found] == pytest.approx([0.0, 0.025, 0.05])
    assert [m.success["seen"].difference.mean for m in found] == pytest.approx([0.0, -0.05, -0.1])
    assert found[-1].success["seen"].arm.mean == pytest.approx((0.5 + 0.1) / 2)


def test_the_trend_is_tested_over_seeds():
    lasts = [-0.10, -0.05, -0.02]
    (trend,) = trends({seed: course(last) for seed, last in enumerate(lasts)}, ARMS)
    each = [0.1 * last / 0.5 for last in lasts]
    assert trend.slope.difference.mean == pytest.approx(sum(each) / 3)
    assert trend.slope.p == pytest.approx(float(stats.ttest_1samp(each, 0.0).pvalue))


def test_panels_are_corrected_together():
    def both(point: Point) -> Point:
        return point.model_copy(
            update={
                "success": {
                    arm: {**own, "other": 0.3 + 0.9 * (own["seen"] - 0.3)}
                    for arm, own in point.success.items()
                }
            }
        )

    courses = {
        seed: [both(point) for point in course(last)] for seed, last in enumerate((-0.1, -0.05, -0.02))
    }
    p = float(stats.ttest_1samp([-0.1, -0.05, -0.02], 0.0).pvalue)
    assert [trend.panel for trend in trends(courses, ARMS)] == ["seen", "other"]
    assert [trend.slope.p for trend in trends(courses, ARMS)] == pytest.approx([2 * p, 2 * p])


def test_a_point_counts_where_every_panel_was_measured_in_both_arms():
    curves = {
        "full": {"seen": {0: 0.1, 5: 0.2, 10: 0.3}, "unseen": {0: 0.0, 5: 0.1, 10: 0.2}},
        "policy_reward": {"seen": {0: 0.1, 5: 0.3, 20: 0.4}, "unseen": {0: 0.0, 10: 0.2}},
    }
    assert measured(curves) == {
        0: {"full": {"seen": 0.1, "unseen": 0.0}, "policy_reward": {"seen": 0.1, "unseen": 0.0}}
    }
    assert measured({}) == {}


def test_a_point_that_a_seed_lacks_is_of_the_others():
    found = moments({0: course(0.1), 1: course(0.3)[:2]}, ARMS)
    assert found[-1].success["seen"].difference.mean == pytest.approx(0.1)


def test_where_no_arm_is_compared_there_is_no_difference_and_no_trend():
    alone = {0: course(0.1)}
    assert trends(alone, ARMS[:1]) == ()
    last = moments(alone, ARMS[:1])[-1].success["seen"]
    assert last.arm.mean == pytest.approx(0.5)
    assert last.difference is None


def test_what_the_page_says_of_the_trends():
    page = (ROOT / "docs" / "check_results.md").read_text()
    for name, written in (
        ("adaptation_fit", "| {place} | {slope} | {p} |"),
        ("adaptation", "{slope} {place}"),
    ):
        found = json.loads((ROOT / "checks" / name / "adaptation.json").read_text())["trends"]
        assert [trend["panel"] for trend in found] == ["in_domain", "out_of_domain"]
        for trend in found:
            mean, low, high = (100 * trend["slope"]["difference"][key] for key in ("mean", "low", "high"))
            place, p = trend["panel"].replace("_", "-"), trend["slope"]["p"]
            said = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
            assert written.format(place=place, slope=said, p=p_text(p)) in page
