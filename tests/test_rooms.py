"""The house: how many modules a folder has, what its `__init__` says, who imports whom, and the roots of errors."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import networkx
import pytest

from rlanything.runs.imports import code_files, imported

ROOT = Path(__file__).parents[1]
TOPS = [ROOT / name for name in ("rlanything", "envs", "benchmarks") if (ROOT / name).is_dir()]
FOLDERS = sorted({path.parent for top in TOPS for path in top.rglob("*.py")})
ATTACKS = [ROOT / "tests" / "envs" / "coding" / "sandbox" / "attacks"]
"""Data of tests, one program a file."""
MOST = 16
OUR_ROOT = "RLAnythingError"
STAYS_INSIDE = {"GoneError", "Refused", "BadTask", "_Expired"}
"""Exceptions of programs that run without this package, in a sandbox or behind a bridge; none of them leaves it. And
the one that ends what an environment does in its time: it must be no `Exception`, and `deadline` alone catches it."""


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


TESTS = sorted({path.parent for path in (ROOT / "tests").rglob("*.py")} - set(ATTACKS))


@pytest.mark.parametrize("folder", [*FOLDERS, *TESTS], ids=shown)
def test_a_folder_is_one_idea(folder):
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST


@pytest.mark.parametrize("folder", FOLDERS, ids=shown)
def test_a_package_says_what_lives_in_it_and_what_does_not(folder):
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    assert len(re.findall(r"[.?!](?=\s|$)", said)) >= 2, "two sentences at least"


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for top in TOPS:
        for path in top.rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def test_no_module_imports_itself_over_others_not_even_inside_functions():
    graph = networkx.DiGraph()
    for module, path in modules().items():
        for name in imported(path, module):
            # The packages around a module run as well. Those of the importer itself are running already.
            parts = name.split(".")
            for k in range(1, len(parts) + 1):
                other = ".".join(parts[:k])
                if other in modules() and not f"{module}.".startswith(f"{other}."):
                    graph.add_edge(module, other)
    circles = [sorted(found) for found in networkx.strongly_connected_components(graph) if len(found) > 1]
    assert circles == []


def test_the_contract_of_environments_forbids_every_room_but_two():
    """import-linter checks that its list of layers names every room; a list of forbidden modules has no such check."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (forbidden,) = [c["forbidden_modules"] for c in contracts if c.get("source_modules") == ["envs"]]
    rooms = {".".join(name.split(".")[:2]) for name in modules() if name.startswith("rlanything.")}
    assert set(forbidden) == rooms - {"rlanything.core", "rlanything.files"}


@pytest.mark.parametrize(
    ("name", "where"), [("import_module", ["rlanything/targets.py"]), ("__import__", [])]
)
def test_nothing_is_imported_by_a_string_but_what_the_configuration_names(name, where):
    inside = "envs/coding/sandbox/inside/"  # a program of its own, which has no access to this package
    users = [shown(path) for path in modules().values() if re.search(rf"\b{name}\(", path.read_text())]
    assert [path for path in users if not path.startswith(inside)] == where


@pytest.mark.parametrize("name", ["get_class", "get_method", "get_object", "hydra.utils.instantiate"])
def test_one_function_finds_the_classes_that_the_configuration_names(name):
    users = {shown(path) for path in modules().values() if re.search(rf"\b{name}\(", path.read_text())}
    assert users <= {"rlanything/targets.py"}


def exceptions() -> dict[str, tuple[Path, list[str]]]:
    """Every class that is or may be an exception: name -> file and bases."""
    found = {}
    for path in modules().values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                found[node.name] = (path, bases)
    return found


def test_every_error_has_the_one_root():
    classes = exceptions()

    def ancestors(name: str) -> set[str]:
        bases = classes[name][1] if name in classes else []
        return {name, *(above for base in bases for above in ancestors(base))}

    builtin = {"Exception", "BaseException", "ValueError", "RuntimeError", "OSError", "KeyError", "TypeError"}
    errors = {name for name in classes if ancestors(name) & builtin}
    assert OUR_ROOT in errors
    assert {
        name: shown(classes[name][0]) for name in errors - STAYS_INSIDE if OUR_ROOT not in ancestors(name)
    } == {}


def test_the_closure_of_the_command_line_holds_every_room():
    assert {name.split("/")[1] for name in code_files(["rlanything.cli"])} >= {
        "core",
        "runs",
        "stages",
        "report",
    }
