"""report/report.md: the table, what it says in sentences, figures, warnings, settings, and how to read it.

Text from outside (arm names, settings) stands in code spans only; see `words.code`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.report import configuration, findings, health, tables
from rlanything.report.records import ARMS, BASE, EVALUATE, TRAIN, Curves
from rlanything.report.setting import Setting
from rlanything.report.study import Cell, Peak, Study
from rlanything.report.words import code, markdown_table, plain

FEW_SEEDS = 3


@dataclass(frozen=True)
class Material:
    """Everything that the document is made from."""

    config: Config
    setting: Setting
    study: Study
    cells: Mapping[str, Mapping[str, Cell]]
    curves: Curves
    peaks: Mapping[str, Mapping[str, Peak]]


def text(material: Material) -> str:
    """The whole document. Equal material gives equal text."""
    parts = (_head, _result, _statements, _learning, _reward, _tasks, _health, _settings, _reading)
    return "\n".join(part(material) for part in parts)


def notes(material: Material) -> list[str]:
    """What is missing or weak about these numbers, one sentence each."""
    config, study = material.config, material.study
    lines = []
    absent = [
        arm for arm in dict.fromkeys([*ARMS, *config.arms]) if arm in config.arms and arm not in study.arms
    ]
    if absent:
        names = ", ".join(code(a) for a in absent)
        lines.append(f"Not evaluated, so left out: {names}. Run `{TRAIN}` and `{EVALUATE}` to add them.")
    silent = [arm for arm in study.arms if arm != BASE and arm not in material.curves]
    if silent:
        names = ", ".join(code(a) for a in silent)
        lines.append(f"No metrics.jsonl under runs/, so no curves: {names}. Run `{TRAIN}` to add them.")
    return lines + [note for arm in study.arms for note in _measured(material, arm)] + _seeds(study)


def _measured(material: Material, arm: str) -> list[str]:
    """Metrics and pairs that one arm lacks."""
    study, titles = material.study, material.setting.titles
    lines = []
    gaps = [title for m, title in titles.items() if m not in study.panels[arm]]
    if gaps:
        lines.append(f"{code(arm)} was not measured on: {', '.join(gaps)}.")
    base = study.panels[BASE]
    changed = [titles[m] for m, p in study.panels[arm].items() if m in base and p.tasks != base[m].tasks]
    if changed:
        lines.append(
            f"{code(arm)} and the base were measured on different tasks ({', '.join(changed)}): only the shared ones "
            f"are compared. If the panels changed, run `{EVALUATE}` again."
        )
    alone = [seed for seed in study.seeds(arm) if seed not in study.seeds(BASE)]
    if alone:
        listed = ", ".join(map(str, alone))
        lines.append(
            f"{code(arm)}: the base was not measured with seed {listed}; left out of the comparison."
        )
    return lines


def _seeds(study: Study) -> list[str]:
    fewest = min(len(study.seeds(arm)) for arm in study.arms)
    if fewest == 1:
        return [
            "One seed only: the intervals come from the tasks alone and say nothing about another training run."
        ]
    if fewest < FEW_SEEDS:
        return [f"Only {fewest} seeds: the intervals are wide because two runs say little about a third."]
    return []


def buffer_folder(material: Material) -> str:
    """Where the task buffer of an adapting arm lies, relative to the project; '' when none was run."""
    adapting = [arm for arm, switches in material.config.arms.items() if switches.adapt]
    for arm in sorted(adapting, key=lambda a: (a != "full", a)):
        for seed in material.curves.get(arm, {}):
            return f"runs/{arm}/seed-{seed}"
    return ""


def _head(material: Material) -> str:
    config = material.config
    seeds = ", ".join(
        f"{code(arm)} {', '.join(map(str, material.study.seeds(arm)))}" for arm in material.study.arms
    )
    return (
        "# Report\n\n"
        f"Scale {code(config.scale)}, environment {code(config.env['_target_'])}, {config.train.iterations} iterations "
        f"of {config.rollout.tasks} tasks x {config.rollout.rollouts} rollouts. Seeds: {seeds}.\n"
        + _bullets(notes(material))
    )


def _result(material: Material) -> str:
    cells, setting = material.cells, material.setting
    present = [m for m in setting.titles if any(m in row for row in cells.values())]
    blocks = [f"### {setting.titles[m]}\n\n{tables.details(cells, m, setting)}" for m in present]
    return (
        "## Result\n\n"
        "Percent, final checkpoint, mean over seeds and tasks. "
        f"Paper: {setting.paper.source}; {setting.paper.lacks}.\n\n"
        f"{tables.overview(cells, setting)}\n"
        "![Differences from the base](figures/gains.png)\n\n"
        "With 95 % intervals; differences are in points and paired by seed and task; p-values are two-sided and "
        "corrected by Holm's method over the arms of one metric.\n\n"
        + "\n".join(blocks + _benchmarks(material))
    )


def _benchmarks(material: Material) -> list[str]:
    """The paper's whole table, where more than one of its benchmarks is of this setting."""
    if len(material.setting.paper.benchmarks) == 1:
        return []
    return [
        "### Every benchmark of the paper\n\n"
        "Percent, in brackets the difference from the base. Problems differ from column to column: compare the "
        "order of the arms and the differences, not the levels.\n\n"
        + tables.benchmarks(material.cells, material.setting)
    ]


def _statements(material: Material) -> str:
    study, setting = material.study, material.setting
    return (
        "## What the numbers say\n"
        + _bullets(findings.against_base(study, setting.paper))
        + _section("Step by step, in the paper's order of arms:", findings.ladder(study, setting.paper))
        + _section("Is it the paper's order?", findings.order(study, setting))
    )


def _learning(material: Material) -> str:
    body = f"## Learning curves\n\n{_images(material, 'learning')}{READING_A_CURVE}\n"
    if not material.peaks:
        return body
    return (
        f"{body}\nPeak and last point of each curve, on the small panels. A peak is picked *because* it is high, so it "
        "is optimistic; it is no result. The result is the table above.\n\n"
        + tables.peak_table(material.peaks, material.setting)
        + _bullets(findings.declines(material.peaks, material.setting))
    )


READING_A_CURVE = (
    "Lines: mean over seeds on the small curve panel; bands: lowest to highest seed. Markers at the right edge: final "
    "checkpoint on the full panel with its 95 % interval; dashed line: the base on the full panel."
)


def _reward(material: Material) -> str:
    return f"## Reward model\n\n{_images(material, 'reward')}{material.setting.reward}\n"


def _tasks(material: Material) -> str:
    folder = buffer_folder(material)
    where = f"The task buffer of this run is in {code(folder)}; show it with {code(f'rlanything buffer ls {folder}')}."
    return (
        f"## Tasks\n\n{_images(material, 'tasks')}"
        "What each run changed, first buffer against last, is in [buffers.md](buffers.md).\n\n"
        f"{where if folder else 'No arm that adapts its tasks was run, so there is no changed buffer to show.'}\n"
    )


def _health(material: Material) -> str:
    lines = [
        f"{code(arm)}, {text}" for arm, texts in health.warnings(material.curves).items() for text in texts
    ]
    clean = "\nNo warnings.\n" if material.curves else "\nNo metrics to check.\n"
    return "## Health\n" + (_bullets(lines) or clean)


def _settings(material: Material) -> str:
    rows = [
        [code(name), code(value), code(default) if default else ""]
        for name, value, default in configuration.rows(material.config)
    ]
    return (
        "## Settings\n\n"
        f"{len(configuration.differing(material.config))} settings differ from their default, which is "
        f"{material.setting.defaults}. Intervals and p-values come from "
        f"{material.study.resamples} resamples seeded by the run's seed.\n\n"
        "<details><summary>All settings</summary>\n\n"
        f"{markdown_table(['setting', 'value', 'default, where it differs'], rows)}\n</details>\n"
    )


def _reading(material: Material) -> str:
    return "## How to read this\n" + _bullets([*READING, material.setting.paper.note, NUMBERS])


READING = (
    "An interval is for the mean over *new training seeds and new tasks made the same way*: tasks are resampled (the "
    "same ones for every seed and both arms), and the spread between seeds enters with Student's t, because a few "
    "seeds cannot be resampled honestly. How often it holds the truth: `python -m rlanything.report.coverage`.",
    "A difference whose interval includes 0 may be chance. It is then not evidence that two arms are equal.",
    "The base is the same frozen checkpoint in every seed, measured with each seed's evaluation randomness.",
)
NUMBERS = (
    "The same numbers for programs: [summary.json](summary.json), [plots/learning.csv](plots/learning.csv); figures "
    "also as SVG in `figures/`."
)


def _images(material: Material, section: str) -> str:
    """The figures of one section, each in a paragraph."""
    drawings = material.setting.drawings.items()
    return "".join(f"![{d.caption}](figures/{name}.png)\n\n" for name, d in drawings if d.section == section)


def _bullets(lines: Sequence[str]) -> str:
    return "".join(["\n", *(f"- {line}\n" for line in lines)]) if lines else ""


def _section(title: str, lines: Sequence[str]) -> str:
    return f"\n{title}\n{_bullets(lines)}" if lines else ""


def terminal_notes(material: Material) -> list[str]:
    """The notes and warnings for a terminal: without Markdown, at most one line each."""
    warned = [f"{arm}, {t}" for arm, texts in health.warnings(material.curves).items() for t in texts]
    return [plain(line.replace("`", "").replace("\\|", "|"), 400) for line in [*notes(material), *warned]]
