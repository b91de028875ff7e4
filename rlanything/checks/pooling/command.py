"""`rlanything check pool`: pool the differences of a project's experiments, publish and print in checks/<name>/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlanything.checks.declaration import PLACE, check_declaration, keep, published
from rlanything.checks.pooling import document, experiments, figure, results
from rlanything.checks.pooling.declare import Compared, Pooling, load_pooling
from rlanything.checks.pooling.experiments import Experiment
from rlanything.checks.pooling.results import Found
from rlanything.checks.running import say
from rlanything.files.records import write_json

POOL = Path("experiments") / "check" / "pool.yaml"


def run_pooling(file: Path, root: Path, params: Path) -> Found:
    """Pool, publish, and print the page.

    Args:
        file: the declaration.
        root: the project.
        params: its configuration, whose environment decides which experiments are pooled.

    Raises:
        ConfigError: for a declaration or experiments that cannot be pooled. Nothing is written then.
        ReportError: for an evaluation that cannot be read.
    """
    declared, read = _declared(file, root, params)
    found = results.pool(declared, read)
    place = root / PLACE / file.stem
    with published(file.stem, root) as folder:
        keep(file, declared, load_pooling, folder / "pool.yaml")
        write_json(folder / "pool.json", document.to_json(found))
        (folder / "report.md").write_text(document.to_markdown(found, file.stem))
        (folder / "figures").mkdir()
        for name, content in figure.draw(found):
            (folder / "figures" / name).write_bytes(content)
    print(document.to_markdown(found, file.stem), end="")
    say(f"pool {file.stem}", f"results: {place}")
    return found


def print_pooling(file: Path, root: Path, params: Path) -> None:
    """Print what would be pooled; writes nothing. Raises as `run_pooling` does."""
    declared, read = _declared(file, root, params)
    print(f"pool {file.stem}: {len(read)} experiments")
    for one in read:
        print(f"  {one.name}: {', '.join(one.panels)}")
    for compared in declared.comparisons:
        print(
            f"  {compared.arm} over {compared.over}: {', '.join(declared.metrics)}{_bound(declared, compared, read)}"
        )


def _bound(declared: Pooling, compared: Compared, read: Sequence[Experiment]) -> str:
    if compared.reward_above is None:
        return ""
    measured = [one for one in read if any(one.measures(compared, metric) for metric in declared.metrics)]
    left = ", ".join(one.name for one in measured if not one.counts(compared))
    return f" (reward_above {compared.reward_above:g}; not pooled: {left or 'none'})"


def _declared(file: Path, root: Path, params: Path) -> tuple[Pooling, list[Experiment]]:
    check_declaration(file, root, 1)
    declared = load_pooling(file)
    return declared, experiments.read_all(declared, root, params)
