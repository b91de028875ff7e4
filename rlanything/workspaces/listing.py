"""The list of workspaces: what is set in each, and which runs it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlanything.buffer.views.terminal import Screen, aligned
from rlanything.core.printable import safe
from rlanything.files.overrides import overrides
from rlanything.files.project import PARAMS, PRIVATE, workspaces


def page(root: Path) -> list[dict[str, Any]]:
    """One row a workspace, the project's root first."""
    return [_row(".", root), *(_row(name, root / PRIVATE / name) for name in workspaces(root))]


def text(rows: Sequence[dict[str, Any]], screen: Screen) -> str:
    """The rows as a table, and how to name a workspace."""
    cells = [
        [safe(row["workspace"]), safe(" ".join(row["overrides"])) or "-", safe(_runs(row)) or "-"]
        for row in rows
    ]
    table = "".join(aligned(("workspace", "set", "runs"), cells, set(), screen))
    return table + "\n. is the project: what is recorded. Another one: rlanything --workspace NAME COMMAND\n"


def _row(name: str, folder: Path) -> dict[str, Any]:
    live = (folder / PRIVATE / "live").glob("[!.]*")  # a hidden one is being removed
    return {
        "workspace": name,
        "folder": str(folder),
        "overrides": overrides(folder / PARAMS),
        "finished": _arms(folder / "runs"),
        "training": sorted({arm for key in live for arm in _arms(key)}),
    }


def _arms(folder: Path) -> list[str]:
    return sorted({path.parent.name for path in folder.glob("*/seed-*") if path.is_dir()})


def _runs(row: dict[str, Any]) -> str:
    training = [f"{arm} (in training)" for arm in row["training"]]
    return ", ".join([*row["finished"], *training])
