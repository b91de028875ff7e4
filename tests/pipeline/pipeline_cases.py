"""A copy of the project whose stages are stand-ins, while its dependencies and parameters are the real ones."""

import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from unittest import mock

import networkx
import yaml
from dvc.cli import main
from dvc.dependency.base import Dependency
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo
from dvc.utils import strictyaml
from dvc.utils.serialize import _yaml

ROOT = Path(__file__).parents[2]
CODE = ("envs", "experiments", "rlanything")
TRAINED = ("outcome", "policy", "policy_reward", "full")
ARMS = ("base", "base_cooled", *TRAINED)


@dataclass(frozen=True)
class Project:
    """A folder with a pipeline that has run once."""

    root: Path
    touched: list[str] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)
    """What the files that were changed held at first, by name."""

    def change(self, name: str, value: object) -> None:
        """Change one parameter in params.yaml by its dotted name."""
        path = self.root / "params.yaml"
        data = yaml.safe_load(path.read_text())
        *parents, last = name.split(".")
        section = data
        for parent in parents:
            section = section[parent]
        assert last in section, f"params.yaml has no {name}"
        assert section[last] != value, f"{name} is {value!r} already"
        section[last] = value
        self.before.setdefault("params.yaml", path.read_text())
        path.write_text(yaml.safe_dump(data, sort_keys=False))

    def touch(self, name: str) -> None:
        """Append a line to a file."""
        path = self.root / name
        self.before.setdefault(name, path.read_text())
        path.write_text(path.read_text() + "\n# changed\n")
        self.touched.append(name)

    def undo(self) -> None:
        """Every changed file holds what it held at first."""
        for name, text in self.before.items():
            (self.root / name).write_text(text)

    def would_run(self, same: str = "") -> set[str]:
        """The stages that changed, and those that follow from them unless a stage in `same` writes what it wrote.

        DVC is asked about parameters and touched files only: to ask about every file takes it seconds.
        """
        with parsed_once(), Repo(str(self.root)) as repo:
            changed = {
                stage.addressing.rpartition("dvc.yaml:")[2]
                for stage in repo.index.stages
                if any(dep.status() for dep in stage.deps if self._may_differ(dep))
            }
            follows = {stage.addressing.rpartition("dvc.yaml:")[2]: stage for stage in repo.index.stages}
            graph = repo.index.graph.reverse(copy=False)
            effective = [follows[name] for name in changed if name not in same.split()]
            after = {d for stage in effective for d in networkx.descendants(graph, stage)}
        return changed | {stage.addressing.rpartition("dvc.yaml:")[2] for stage in after}

    def _may_differ(self, dep: Dependency) -> bool:
        if isinstance(dep, ParamsDependency):
            return True
        return any(f"{name}/".startswith(f"{dep.def_path}/") for name in self.touched)

    def repro(self, same: str = "") -> set[str]:
        """Run `dvc repro` and say which stages ran; those in `same` write what they wrote before."""
        log = self.root / "ran.log"
        log.unlink(missing_ok=True)
        dvc(self.root, "repro", "--quiet", "--no-run-cache", same=same)
        return set(log.read_text().split()) if log.is_file() else set()


def dvc(root: Path, *words: str, same: str = "") -> None:
    """Run a DVC command there, in this process: to import DVC takes it seconds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"PATH": path, "DVC_NO_ANALYTICS": "1", "SAME": same}
    with chdir(root), mock.patch.dict(os.environ, settings), parsed_once():
        assert main(list(words)) == 0


@contextmanager
def parsed_once() -> Iterator[None]:
    """DVC parses no text twice. It reads params.yaml once for every stage, and a parser in Python takes long."""

    def parsed(text: str, path: str, typ: str = "safe") -> dict:
        return deepcopy(known(text)) if typ == "safe" else parse(text, path, typ)

    with mock.patch.object(_yaml, "parse_yaml", parsed), mock.patch.object(strictyaml, "parse_yaml", parsed):
        yield


parse = _yaml.parse_yaml


@cache
def known(text: str) -> dict:
    return parse(text, "")


def pipeline() -> dict:
    """The real dvc.yaml."""
    return yaml.safe_load((ROOT / "dvc.yaml").read_text())


def with_stand_ins(data: dict) -> dict:
    """The same stages, dependencies, parameters and outputs, with commands that take no time."""
    for name, stage in data["stages"].items():
        body = stage.get("do", stage)
        label = f"{name}@${{key}}" if "do" in stage else name
        outputs = [next(iter(out)) if isinstance(out, dict) else out for out in outs(body)]
        body["cmd"] = " ".join(["python stand_in.py", label, *outputs])
    return data


def outs(body: dict) -> list:
    """Everything that a stage writes."""
    return [out for kind in ("outs", "metrics", "plots") for out in body.get(kind, [])]
