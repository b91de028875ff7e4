"""Stage `report`: reads evaluation/ and runs/, writes report/, prints the table of arms beside the paper's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rlanything.config import CONTROLS, Config
from rlanything.core.errors import ConfigError
from rlanything.core.printable import counted
from rlanything.core.types import Json
from rlanything.files import atomic, locks
from rlanything.files.project import PRIVATE
from rlanything.files.reader import read_json, read_objects
from rlanything.report import buffers, caveats, document, exports, figures, tables
from rlanything.report.page.page import page_html
from rlanything.report.report_data import ReportData, gather
from rlanything.report.results.evaluations import Evaluation, broken
from rlanything.stages import REPORT

FOLDER = "report"


def write_report(config: Config, root: Path) -> None:
    """Make the report of the project at `root`. Raises `ReportError` when an input is missing or corrupt.

    Raises `ConfigError` when a result was replaced while it was read. No lock keeps others from that: a training takes
    hours, and its results are exchanged in a moment. The lock keeps another report alone from its files.
    """
    with locks.stage(root, REPORT, root / FOLDER):
        _write_report(config, root)


def _write_report(config: Config, root: Path) -> None:
    before = _results(config, root)
    material = gather(config, root)
    _check_tasks(config, root, material.comparison.panels)
    changed = buffers.changes(material.changed, root)
    if exchanged := sorted(path for path, _ in before ^ _results(config, root)):
        raise ConfigError(
            f"{exchanged[0]}: replaced while the report was made, which may have read some of both; the same command "
            "makes it again"
        )
    for name, page in buffers.pages(changed):
        _put(root / FOLDER / "buffers" / name, page)
    _put(root / FOLDER / "buffers.md", buffers.markdown(changed))
    _write(material, root / FOLDER)
    _show(material, Console(), root)


def _results(config: Config, root: Path) -> set[tuple[Path, tuple[int, int]]]:
    """The runs and evaluations that are there, with what changes when one is replaced."""
    found = set()
    runs = (root / "runs" / arm for arm in config.arms)
    evaluations = (root / "evaluation" / f"{arm}.json" for arm in (*CONTROLS, *config.arms))
    for place in chain(runs, evaluations):
        with suppress(FileNotFoundError):
            state = place.stat()
            found.add((place, (state.st_ino, state.st_mtime_ns)))
    return found


def _check_tasks(config: Config, root: Path, arms: Iterable[str]) -> None:
    """Raise `ReportError` unless every evaluation has the tasks of the policy's panels, and no more tries of them than
    are configured. Episodes that crashed are missing in it.

    A panel without its file of tasks is not compared: evaluations can be fetched without the tasks.
    """
    places = {name: root / "data" / "tasks" / f"{name}.jsonl" for name in config.tasks.policy_panels}
    wanted = {
        name: {line.get("task_id") for line in read_objects(place)}
        for name, place in places.items()
        if place.is_file()
    }
    for arm in arms:
        path = root / "evaluation" / f"{arm}.json"
        for seed, results in Evaluation.model_validate(read_json(path)).seeds.items():
            for name, tasks in wanted.items():
                if name not in results:
                    continue
                if trouble := _trouble(results[name], tasks, config.evaluate.repeats):
                    raise broken(path, f"seeds.{seed}.{name}: {trouble}")


def _trouble(measured: Mapping[str, Sequence[int]], wanted: Collection[Json], repeats: int) -> str:
    """What is wrong with the tasks of a seed. '' for nothing. measured: task -> its tries."""
    if odd := sorted(map(str, measured.keys() ^ set(wanted))):
        which = "is no task of the panel" if odd[0] in measured else "was not measured"
        return f"{counted(len(odd), 'task')} that the panel and the evaluation do not share; {odd[0][:12]} {which}"
    for task, tries in measured.items():
        if len(tries) > repeats:
            return f"{task[:12]} has {len(tries)} tries; evaluate.repeats = {repeats}"
    return ""


def _write(material: ReportData, folder: Path) -> None:
    """Write the files of the report. The document comes last, so that the files that it links to exist."""
    drawn = dict(figures.draw(figures.charts(material)))
    for name, content in drawn.items():
        _put(folder / "figures" / name, content)
    _put(folder / "plots" / "learning.csv", exports.learning_csv(material.curves, material.contents.metrics))
    _put(folder / "headline.json", exports.headline_json(material.config, material.cells))
    _put(folder / "summary.json", exports.summary_json(material.cells))
    _put(folder / "index.html", page_html(material, drawn))
    _put(folder / "report.md", document.report_md(material))


def _put(path: Path, content: str | bytes) -> None:
    """Write a file, and remove what a killed report left of it."""
    atomic.clear_leftovers(path)
    atomic.write_bytes(path, content) if isinstance(content, bytes) else atomic.write_text(path, content)


def _show(material: ReportData, console: Console, root: Path) -> None:
    """Print the table, the peaks (labelled as such), the caveats, and the paths of the files."""
    console.print(tables.terminal(material.cells, material.contents))
    if material.peaks:
        for table in tables.terminal_peaks(material.peaks, material.contents):
            console.print(table)
    for line in caveats.for_terminal(material):
        console.print(Text(f"! {line}"))
    _paths(console, root, buffers.buffer_run(material.config, material.curves))


def _paths(console: Console, root: Path, run: str | None) -> None:
    """Print where the files are, from the project's root, and how to show the buffer of `run`."""
    workspace = root.name if root.parent.name == PRIVATE else ""
    here, option = (f".rla/{workspace}/", f" --workspace {workspace}") if workspace else ("", "")
    console.print(Text(f"Report: {here}{FOLDER}/report.md   numbers: {here}{FOLDER}/summary.json"))
    console.print(Text(f"Page: {here}{FOLDER}/index.html"))
    if run:
        console.print(Text(f"Buffer: {here}{run}/buffer   show it: rlanything{option} buffer ls {run}"))
