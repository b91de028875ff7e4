"""Which rewrites each acceptance rule takes, and what the check makes of fresh rollouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlanything.buffer import Event
from rlanything.checks.adaptation import document, results
from rlanything.checks.adaptation.declare import Adaptation, Pair, load_adaptation
from rlanything.checks.adaptation.finished import Answers, Moved, Run
from rlanything.checks.adaptation.fresh import Progress
from rlanything.checks.adaptation.rewrites import Rewrite, decides, inside, rewrites
from rlanything.config import parse
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.errors import ConfigError
from rlanything.core.types import Direction, EventKind, Task
from rlanything.files.records import write_json
from rlanything.files.yaml_file import read_mapping
from rlanything.planning import compose
from rlanything.report.formatting import p_text

BAND = AcceptanceRule()
OLD, NEW = Task("toy", "old", {"k": 0}), Task("toy", "new", {"k": 1})
ROOT = Path(__file__).parents[2]


def rewrite(way: Direction, before: float, after: float) -> Rewrite:
    return Rewrite(old=OLD.task_id, new=NEW.task_id, direction=way, before=before, after=after)


def event(kind: EventKind, iteration: int, before: float, after: float | None = None) -> Event:
    return Event(kind, 0, iteration, Direction.HARDER, OLD.task_id, before, NEW, after)


def test_a_rewrite_keeps_what_was_measured_when_it_was_asked_for():
    """With paired acceptance the decision holds a later accuracy of the old task."""
    found = rewrites(
        [event(EventKind.PROPOSED, 0, 1.0), event(EventKind.REJECTED, 1, before=0.5, after=0.75)]
    )
    assert found == [rewrite(Direction.HARDER, 1.0, 0.75)]


def test_rewrites_whose_rollouts_crashed_are_left_out():
    assert rewrites([event(EventKind.PROPOSED, 0, 1.0), event(EventKind.REJECTED, 1, 1.0)]) == []


@pytest.mark.parametrize(
    ("before", "after", "taken"),
    [
        (1.0, 0.5, {"none", "inclusive", "strict", "paired"}),
        (1.0, 0.2, {"none", "inclusive", "refused", "paired"}),
        (1.0, 0.1, {"none", "refused", "paired"}),
        (1.0, 1.0, {"none", "refused", "paired"}),
    ],
)
def test_what_each_rule_takes_of_harder_tasks(before, after, taken):
    again = {OLD.task_id: (8, 8), NEW.task_id: (4, 8)}
    one = rewrite(Direction.HARDER, before, after)
    assert {rule for rule in results.RULES if decides(rule, one, BAND, again)} == taken


@pytest.mark.parametrize("again", [(4, 8), (0, 8), (8, 8), (0, 0)])
def test_paired_decides_on_further_rollouts_of_both(again):
    """A task that was as hard all along is no longer taken: before training, 4 of 8 succeed as well."""
    one = rewrite(Direction.HARDER, 1.0, 0.5)
    assert not decides("paired", one, BAND, {OLD.task_id: (4, 8), NEW.task_id: again})


@given(way=st.sampled_from(list(Direction)), before=st.floats(0, 1), after=st.floats(0, 1))
def test_refused_is_what_strict_does_not_take_and_inclusive_takes_more(way, before, after):
    one = rewrite(way, before, after)
    strict, refused, inclusive = (decides(rule, one, BAND, {}) for rule in ("strict", "refused", "inclusive"))
    assert strict is not refused
    assert inclusive or not strict
    assert decides("none", one, BAND, {})


def test_the_band_has_its_bounds():
    assert [inside(share, BAND) for share in (0.19, 0.2, 0.8, 0.81)] == [False, True, True, False]


def run(folder: Path, seed: int, answers: Answers) -> Run:
    file = folder / f"{seed}.json"
    write_json(file, answers.model_dump(mode="json"))
    return Run(seed, {}, "key", file)


def answers(new: tuple[int, int], first: tuple[int, int]) -> Answers:
    """One rewrite, which was recorded to fall from 100 to 50 % and was accepted, and one first task that was kept."""
    played = {OLD.task_id: (12, 16), NEW.task_id: new}
    return Answers(
        rewrites=[rewrite(Direction.HARDER, 1.0, 0.5)],
        probes={"base": played},
        again={"base": {OLD.task_id: (6, 8), NEW.task_id: (4, 8)}},
        first={
            "full": {OLD.task_id: first, "kept": (8, 8)},
            "policy_reward": {OLD.task_id: (8, 8), "kept": (6, 8)},
        },
        moved=Moved(slots={OLD.task_id: (0.5, 0.1)}, apart=(0.75, 0.2)),
        course=[],
    )


def test_the_numbers_follow_from_the_counts(tmp_path):
    declared = Adaptation(probes=("base",))
    measured = [run(tmp_path, 0, answers((8, 16), (4, 8))), run(tmp_path, 1, answers((4, 16), (8, 8)))]
    found = results.read(declared, BAND, measured)
    strict = next(row for row in found.rows if row.rule == "strict")
    assert strict.recorded.mean == pytest.approx(0.5)
    assert strict.fresh.mean == pytest.approx((0.25 + 0.5) / 2)
    assert strict.right.mean == strict.inside.mean == 1.0
    refused = next(row for row in found.rows if row.rule == "refused")
    assert refused.accepted.mean == 0.0
    assert refused.fresh is None
    lost = {row.part: row.difference.difference.mean for row in found.lost}
    assert lost == pytest.approx({"all": 0.0, "replaced": -0.25, "kept": 0.25})
    assert [d.moved.mean for d in found.distances] == pytest.approx([0.5, 0.1])
    assert [d.apart.mean for d in found.distances] == pytest.approx([0.75, 0.2])


def test_a_rewrite_that_cannot_be_played_again_is_still_one_that_a_rule_takes(tmp_path):
    """What a rule takes depends on what training measured, and not on a crash of the check's rollouts."""
    declared = Adaptation(probes=("base",))
    measured = [run(tmp_path, 0, answers((8, 16), (4, 8))), run(tmp_path, 1, answers((0, 0), (8, 8)))]
    strict = next(row for row in results.read(declared, BAND, measured).rows if row.rule == "strict")
    assert strict.accepted.mean == 1.0
    assert strict.fresh.mean == 0.25


def rounded(page: dict) -> dict:
    """As JSON gives it back, to twelve digits: from Python 3.12 on `sum` rounds otherwise."""
    return json.loads(json.dumps(page), parse_float=lambda text: float(f"{float(text):.12g}"))


@pytest.mark.parametrize("name", ["adaptation", "adaptation_fit"])
def test_the_recorded_page_is_what_the_recorded_rollouts_say(name):
    folder = ROOT / "checks" / name
    declared = load_adaptation(folder / "adaptation.yaml")
    assert (
        read_mapping(folder / "adaptation.yaml").keys()
        == declared.model_fields_set
        == set(Adaptation.model_fields)
    )
    stored = json.loads((folder / "adaptation.json").read_text())
    measured = [
        Run(int(seed), {}, key, folder / "rollouts" / f"seed-{seed}.json")
        for seed, key in stored["keys"].items()
    ]
    found = results.read(declared, AcceptanceRule(**stored["band"]), measured)
    assert rounded(document.to_json(found)) == rounded(stored)
    assert document.to_markdown(found, name) == (folder / "report.md").read_text()


def test_what_the_page_says_of_the_rules_at_the_study_scale():
    compared = json.loads((ROOT / "checks" / "adaptation_fit" / "adaptation.json").read_text())["compared"]
    page = (ROOT / "docs" / "check_results.md").read_text()
    for rule, over in (("strict", "refused"), ("paired", "strict")):
        cells = [f"`{rule}` over `{over}`"]
        for probe in ("trained", "base"):
            (one,) = (
                c["difference"] for c in compared if (c["rule"], c["over"], c["probe"]) == (rule, over, probe)
            )
            mean, low, high = (100 * one["difference"][key] for key in ("mean", "low", "high"))
            cells += [f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]", p_text(one["p"])]
        assert f"| {' | '.join(cells)} |" in page


def test_no_interval_goes_beyond_what_can_be(tmp_path):
    """Two seeds that differ have wide intervals: they end where a share, a count or a change ends."""
    declared = Adaptation(probes=("base",))
    other = answers((12, 16), (8, 8)).model_copy(update={"moved": Moved(slots={}, apart=(0.1, 1.9))})
    twice = other.model_copy(update={"rewrites": [*other.rewrites, rewrite(Direction.HARDER, 0.5, 1.0)]})
    found = results.read(
        declared, BAND, [run(tmp_path, 0, answers((8, 16), (4, 8))), run(tmp_path, 1, twice)]
    )
    every = next(row for row in found.rows if row.rule == "none")
    assert (every.right.low, every.right.high) == (0.0, 1.0)
    assert every.accepted.low == 0.0
    assert every.recorded.low == -1.0
    assert [d.apart.low for d in found.distances] == [0.0, 0.0]
    assert found.distances[1].apart.high == 2.0


def test_rollouts_that_are_missing_are_named(tmp_path):
    whole = answers((8, 16), (4, 8)).model_dump(mode="json")
    del whole["probes"]["base"][NEW.task_id]
    write_json(tmp_path / "0.json", whole)
    one = Run(0, {}, "key", tmp_path / "0.json")
    with pytest.raises(ConfigError, match=f"base: no rollouts of task {NEW.task_id[:12]}"):
        one.answers(["base"])
    with pytest.raises(ConfigError, match="no rollouts of the policy 'trained'"):
        run(tmp_path, 1, answers((8, 16), (4, 8))).answers(["trained"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arm": "policy"}, "'policy' rewrites no tasks"),
        ({"arm": "base"}, "'base' is a control and no arm"),
        ({"against": "policy"}, "it differs in train_reward, adapt"),
        ({"against": "full"}, "it differs in nothing"),
        ({"seeds": 99}, "seeds = 99: train.seeds"),
        ({"arm": "ful"}, "full"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    config = parse(compose.compose([], ROOT))
    with pytest.raises(ConfigError, match=message):
        Adaptation(**change).check(config)


def test_the_declared_check_can_be_run_on_the_default_experiment():
    load_adaptation(ROOT / "experiments" / "check" / "adaptation.yaml").check(
        parse(compose.compose([], ROOT))
    )


def test_a_misspelt_key_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"adaptation\.yaml"):
        load_adaptation(tmp_path / "none.yaml")
    (tmp_path / "one.yaml").write_text("rolouts: 3\n")
    with pytest.raises(ConfigError, match="rollouts"):
        load_adaptation(tmp_path / "one.yaml")
    (tmp_path / "one.yaml").write_text("probes: [base, base]\n")
    with pytest.raises(ConfigError, match="'base' is there twice"):
        load_adaptation(tmp_path / "one.yaml")


def test_a_pair_of_rules_that_cannot_be_compared_is_refused(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("compare: [{rule: strict, over: strict}]\n")
    with pytest.raises(ConfigError, match=r"compare.*'strict' cannot be compared with itself"):
        load_adaptation(file)
    file.write_text("compare: [{rule: strict, over: none}, {rule: none, over: strict}]\n")
    with pytest.raises(ConfigError, match=r"'strict' and 'none' are compared twice"):
        load_adaptation(file)
    file.write_text("compare: [{rule: strickt, over: none}]\n")
    with pytest.raises(ConfigError, match=r"strickt.*'none', 'inclusive', 'strict', 'paired' or 'refused'"):
        load_adaptation(file)


PAIRS = (Pair(rule="strict", over="refused"),)


def with_refused(folder: Path, seed: int, inside: tuple[int, int], refused: int | None) -> Run:
    """A run of a rewrite that `strict` takes and, where `refused` is given, one that it refuses.

    inside: successes of 8 on the first, by both policies. refused: those on the second.
    """
    one = answers((8, 16), (8, 8))
    more = (
        [] if refused is None else [rewrite(Direction.HARDER, 0.5, 1.0).model_copy(update={"new": "refused"})]
    )
    probes = {
        name: {**one.probes["base"], NEW.task_id: (hits, 8), "refused": (refused or 0, 8)}
        for name, hits in zip(("base", "trained"), inside, strict=True)
    }
    again = {name: {**one.again["base"], "refused": (1, 8)} for name in probes}
    changed = {"rewrites": [*one.rewrites, *more], "probes": probes, "again": again}
    return run(folder, seed, one.model_copy(update=changed))


def test_rules_are_compared_by_seed_and_corrected_together(tmp_path):
    """A seed without a refused rewrite says nothing about the pair, though it has accepted ones."""
    measured = [
        with_refused(tmp_path, 0, (4, 4), 8),
        with_refused(tmp_path, 1, (4, 8), 4),
        with_refused(tmp_path, 2, (4, 4), 8),
        with_refused(tmp_path, 3, (8, 8), None),
    ]
    found = results.read(Adaptation(compare=PAIRS), BAND, measured).compared
    assert [row.probe for row in found] == ["base", "trained"]
    differences = ([1.0, 0.0, 1.0], [1.0, -1.0, 1.0])
    assert [row.difference.difference.mean for row in found] == pytest.approx([2 / 3, 1 / 3])
    alone = [float(stats.ttest_1samp(values, 0.0).pvalue) for values in differences]
    assert alone[0] < alone[1]
    assert [row.difference.p for row in found] == pytest.approx([2 * alone[0], max(2 * alone[0], alone[1])])


def test_rules_of_which_one_takes_nothing_are_not_compared(tmp_path):
    measured = [run(tmp_path, seed, answers((8, 16), (4, 8))) for seed in (0, 1)]
    (row,) = results.read(Adaptation(probes=("base",), compare=PAIRS), BAND, measured).compared
    assert row.difference is None


def test_progress_says_how_much_is_left(monkeypatch):
    now = iter([0.0, 0.0, 10.0, 60.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    said: list[str] = []
    progress = Progress(4000, said.append)
    progress.add(500)
    progress.add(500)
    assert said == ["1,000 of 4,000 episodes, about 3.0 min left"]
