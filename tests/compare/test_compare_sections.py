"""The report's sections, figures and the paper's values on the page of a comparison, also of whole experiments."""

from __future__ import annotations

import json
import shutil

import pytest
from compare_cases import compared, declare, experiment, figures_made, recorded
from report_cases import config

from rlanything.compare.joint import joint
from rlanything.compare.page import comparison_files, comparison_md, comparison_page
from rlanything.report.figures import KINDS


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = experiment(tmp_path_factory.mktemp("experiment"))
    recorded(made, "first")
    return made


@pytest.mark.long
def test_whole_experiments_have_the_sections_of_the_report_with_the_sides_beside_each_other(root, tmp_path):
    """Votes, theory, reward hacking and cost, a row for each side of an arm; a figure of each arm that has one."""
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    found = compared(root, ".", str(other))
    text = comparison_md(found)
    for section in ("Reward model", "Theory over time", "Reward hacking", "Cost"):
        assert f"\n## {section}\n" in text
    rows = [
        line.split(" | ")[0]
        for line in text.partition("## Theory")[2].partition("## Reward h")[0].split("\n")
    ]
    wanted = [f"| `{arm}, {side}`" for arm in ("policy", "full") for side in "AB"]
    assert [row for row in rows if "`" in row] == wanted
    assert "`full, A`: no seed of 2; `full, B`: no seed of 2" in text
    page = comparison_page(found)
    assert page.count("Reward model (paper: Fig. 1.4): full") == page.count("(Theorem 2): full") > 0
    assert "Success by share of good votes: full" in page, "of a project the stored votes are read"
    assert "(Theorem 2): policy" not in page, "a figure without a number is left out"


def test_an_arm_whose_name_is_a_path_has_no_votes_read(tmp_path):
    root = experiment(tmp_path, ("base",))
    for folder in ("report/plots", "runs", "evil/seed-0/rollouts"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "report/summary.json").write_text(json.dumps({"../evil": {"in_domain": {"mean": 0.5}}}))
    (root / "report/plots/learning.csv").write_text("arm,seed,iteration,metric,value\n../evil,0,0,mu,1.5\n")
    (root / "evil/seed-0/rollouts/iter_0000.jsonl.gz").write_bytes(b"no rollouts" * 9)
    assert "| `../evil, A` | – | – | 1.50 → 1.50 |" in comparison_md(compared(root, ".", str(root)))


def test_revisions_have_the_sections_of_what_they_recorded(root):
    text = comparison_md(compared(root, ".", revisions=["HEAD"]))
    assert "\n## Theory over time\n" in text
    assert "| `full, A` | – | – | 1.2" in text, "mu is recorded, the shares of votes are not"
    assert "| `full, B` | 6" in text


def test_the_reward_model_that_another_arm_has_paid_for_is_named_with_its_side(root, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(root, other, symlinks=True)
    switches = {arm: of.model_dump() for arm, of in config().arms.items()}
    of = config(arms=switches | {"policy": {**switches["policy"], "reward_from": "policy_reward"}})
    declare(other, of)
    arms = joint(compared(root, ".", str(other))).config.arms
    assert arms["policy, A"].reward_from is None
    assert arms["policy, B"].reward_from == "policy_reward, B"


@pytest.mark.slow
def test_a_folder_has_a_figure_of_each_arm_as_files(tmp_path, monkeypatch):
    """One seed of two arms: to draw every figure in every form takes most of a second."""
    root = experiment(tmp_path, ("base", "policy", "full"), seeds=1)
    recorded(root, "first")
    made = figures_made(monkeypatch)
    files = comparison_files(compared(root, ".", revisions=["HEAD"]))
    names = {name.rpartition(".")[0] for name in files} - {"index"}
    assert {"figures/learning-1", "figures/reward_model-2", "figures/theorem_2-2"} <= names
    assert "figures/theorem_2-1" not in names, "a figure without a number is left out"
    assert len(made) == len(names), "what no page shows is not drawn"
    assert files.keys() == {"index.html"} | {f"{name}.{kind}" for name in names for kind in KINDS}
    assert b"\npanel/in_domain,A HEAD,seed 0,0," in files["figures/learning-2.csv"]


def test_the_papers_values_stand_beside_the_results_of_its_arms(root, tmp_path):
    lines = comparison_md(compared(root, "policy", "full")).split("\n")
    assert "| metric | A `policy` | B `full` | paper: policy | paper: full |" in lines
    (values,) = [line for line in lines if line.startswith("| Accuracy out-of-domain |")]
    assert values.endswith("| 59.3 | 63.6 |")
    (against,) = [line for line in lines if line.startswith("| B − A, Accuracy out-of-domain |")]
    assert against.endswith("| +4.3 |")
    assert "Paper: arXiv 2602.02488 v1, Table 1 (ALFWorld). The paper trains" in "\n".join(lines)
    whole = comparison_md(compared(root, ".", str(root))).split("\n")
    assert any(line.startswith("| arm, metric |") and line.endswith("| paper |") for line in whole)
    ends = [
        line.split(" | ")[-1] for line in whole if "Accuracy out-of-domain | " in line and "−" not in line
    ]
    assert ends == ["44.9 |", "– |", "59.3 |", "63.6 |"]
    assert not any(line.startswith("| sides, metric") and "paper" in line for line in whole)


def test_without_an_arm_of_the_paper_there_is_no_column_of_it(root):
    text = comparison_md(compared(root, "outcome/seed-0", "outcome/seed-1"))
    assert "Paper: " not in text
    assert "paper |" not in text
