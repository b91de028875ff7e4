"""The files of the project that a module depends on, found by parsing its imports. No module is imported for this.

These count: imports anywhere in a file, also inside functions; the `__init__` of every enclosing package; modules that
are named by a string, because a program may be started in another process by its name; the data files beside these
modules. These do not count: imports for type checkers, and files that `files/hashes.py` leaves out. Packages of other
projects are listed by name; their files are not read.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlanything.files.hashes import counts, digest, files_in

PACKAGES = ("rlanything", "envs")
"""The project's own packages."""
INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages, which have a version."""
TARGET = "_target_"
INIT = "__init__.py"
MOST = 2 / 3
"""Share of a folder's files from which `whole_folders` names the folder."""
_DOTTED = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")


def code_files(names: Iterable[str], without: Collection[str] = ()) -> dict[str, Path]:
    """The source and data files that these modules (or classes, by their dotted names) depend on.

    Args:
        names: dotted names of modules or classes.
        without: modules that are named but never run here; they and what only they need are left out.

    Returns:
        path from the project's root, such as `rlanything/core/ids.py`, -> the file that Python would read.
    """
    return _with_data(_reached(names, without).values(), [(name, package_folder(name)) for name in PACKAGES])


def outside_files(names: Collection[str]) -> dict[str, Path]:
    """The same of the packages outside of the project that these classes lie in; the path begins with the package.

    DVC cannot see these files, which may lie anywhere. A class that is not found here has none.
    """
    tops = [(top, place) for top in _outside(names) for place in outside_places(top)]
    return _with_data(_reached(names).values(), tops) if tops else {}


def code_hashes(names: Collection[str]) -> dict[str, str]:
    """sha256 of every file of `code_files` and `outside_files`, by its path."""
    return {name: digest(path) for name, path in {**code_files(names), **outside_files(names)}.items()}


def packages(names: Collection[str]) -> set[str]:
    """The top-level modules of other projects that these modules (or classes), or their dependencies, import."""
    found = {name for module, path in _reached(names).items() for name in imported(path, module)}
    tops = {name.partition(".")[0] for name in found} | {name.partition(".")[0] for name in names}
    return tops - {*PACKAGES, *sys.stdlib_module_names}


def _reached(names: Iterable[str], without: Collection[str] = ()) -> dict[str, Path]:
    """Module -> file: these modules and all of the project that they depend on, not through those in `without`."""
    modules: dict[str, Path] = {}
    names = list(names)
    disk = _Disk(_outside(names))
    found = [module for name in names for module in disk.modules(name)]
    while found:
        module = found.pop()
        path = disk.source(module)
        if path is not None and module not in modules and module not in without:
            modules[module] = path
            needs, named = _names(path, module)
            started = (other for text in named for other in disk.started(text))
            found += [other for name in (*needs, *started) for other in disk.modules(name)]
    return modules


def targets(value: Any) -> Iterator[str]:
    """The dotted name of every class that a part of the configuration names by `_target_`."""
    if isinstance(value, Mapping):
        yield from (str(item) for key, item in value.items() if key == TARGET)
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        yield from targets(item)


def whole_folders(files: Mapping[str, Path]) -> list[str]:
    """The names of `files`. A folder's name replaces its files when `files` has at least the share `MOST` of them.

    DVC takes longer to write dvc.lock the more names there are. The price: DVC may run a stage again for a changed file
    that the stage does not need. A run's fingerprint uses the files themselves.
    """
    whole: set[str] = set()
    for folder in {parent for name in files for parent in Path(name).parents if parent.parts}:
        place = place_of(folder)
        inside = {f"{folder.as_posix()}/{path.relative_to(place).as_posix()}" for path in files_in(place)}
        if len(inside & files.keys()) >= MOST * len(inside):
            whole.add(folder.as_posix())
    kept = whole | set(files)
    return sorted(name for name in kept if not any(str(p) in whole for p in Path(name).parents))


def imported(path: Path, module: str) -> frozenset[str]:
    """What the file of `module` imports: dotted names of modules, or of objects in modules."""
    return _names(path, module)[0]


def _names(path: Path, module: str) -> tuple[frozenset[str], frozenset[str]]:
    """What the file of `module` imports, and the strings in it that may be names of modules."""
    state = path.stat()
    return _parsed(path, module, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1 << 12)
def _parsed(path: Path, module: str, *_state: int) -> tuple[frozenset[str], frozenset[str]]:
    package = module if path.name == INIT else module.rpartition(".")[0]
    finder = _Finder(package)
    finder.visit(ast.parse(path.read_text(), str(path)))
    return frozenset(finder.imported), frozenset(finder.named)


class _Finder(ast.NodeVisitor):
    """Collects the names that a file imports when it runs."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.imported: set[str] = set()
        self.named: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        """Skip the body of `if TYPE_CHECKING`, which only type checkers read."""
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b`."""
        self.imported |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b`: b may be a module or an object in a. `from . import b` is relative to this package."""
        above = self.package.split(".")[: len(self.package.split(".")) + 1 - node.level] if node.level else []
        origin = ".".join([*above, *([node.module] if node.module else [])])
        self.imported |= {origin if alias.name == "*" else f"{origin}.{alias.name}" for alias in node.names}

    def visit_Constant(self, node: ast.Constant) -> None:
        """A string that may be the name of a module."""
        if isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            self.named.add(node.value)


class _Disk:
    """The project's modules on the disk. It lists a folder once, so each computation has its own: files may change.

    outside: the top-level packages of others whose modules count as well.
    """

    def __init__(self, outside: Collection[str]) -> None:
        self._places = {name: [package_folder(name)] for name in PACKAGES}
        self._places |= {name: list(outside_places(name)) for name in outside}
        self._entries: dict[str, dict[str, bool]] = {}
        self._sources: dict[str, Path | None] = {}
        self._modules: dict[str, tuple[str, ...]] = {}

    def modules(self, name: str) -> tuple[str, ...]:
        """The module that a dotted name means or lies in, and its packages; () for a name outside the project."""
        if name not in self._modules:
            parts = name.split(".")
            known = (
                [".".join(parts[:k]) for k in range(1, len(parts) + 1)] if parts[0] in self._places else []
            )
            self._modules[name] = tuple(module for module in known if self.source(module) is not None)
        return self._modules[name]

    def source(self, module: str) -> Path | None:
        """The file of a module of the project; None where there is no such module."""
        if module not in self._sources:
            top, *rest = module.split(".")
            found = (self._found(os.path.join(place, *rest)) for place in self._places.get(top, ()))
            self._sources[module] = next(filter(None, found), None)
        return self._sources[module]

    def started(self, name: str) -> tuple[str, ...]:
        """The modules that a program may start by this name. The name of a package stands for all its modules."""
        path = self.source(name)
        if path is None:
            return ()
        inside = self._listed(str(path.parent)) if path.name == INIT else {}
        return name, *(f"{name}.{file[:-3]}" for file in inside if file.endswith(".py") and file != INIT)

    def _found(self, place: str) -> Path | None:
        """The file of the package or module at a place without an ending. A package comes first, as for Python."""
        folder, name = os.path.split(place)
        beside = self._listed(folder)
        if name in beside and self._listed(place).get(INIT):
            return Path(place, INIT)
        return Path(f"{place}.py") if beside.get(f"{name}.py") else None

    def _listed(self, folder: str) -> dict[str, bool]:
        """The names in a folder, and whether each is a file; {} where there is no such folder."""
        if folder not in self._entries:
            try:
                with os.scandir(folder) as entries:
                    self._entries[folder] = {entry.name: entry.is_file() for entry in entries}
            except (FileNotFoundError, NotADirectoryError):
                self._entries[folder] = {}
        return self._entries[folder]


def place_of(path: Path) -> Path:
    """Where Python finds a file or folder of the project, given by its path from the root, or of `outside_files`."""
    top, *rest = path.parts
    if top in PACKAGES:
        return package_folder(top).joinpath(*rest)
    name = top.removesuffix(".py")
    found = [place.joinpath(*rest) if rest else place.with_name(top) for place in outside_places(name)]
    return next((place for place in found if place.exists()), path)


@lru_cache
def package_folder(name: str) -> Path:
    """The folder of a top-level package. Raises `ModuleNotFoundError`."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {name!r}")
    return Path(spec.submodule_search_locations[0])


def outside_places(name: str) -> tuple[Path, ...]:
    """The folders of a top-level package of others, or the file of a module without its ending.

    () where it is not found, is installed, or has no source.
    """
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # no name of a module; or one that was made without a file
        return ()
    if spec is None:
        return ()
    file = Path(spec.origin) if spec.origin else Path()
    alone = [file.with_suffix("")] if file.suffix == ".py" else []
    places = [Path(place) for place in spec.submodule_search_locations or alone]
    return tuple(place for place in places if not {*INSTALLED} & {*place.parts})


def _outside(names: Iterable[str]) -> set[str]:
    """The top-level packages of others that these modules or classes lie in."""
    return {name.partition(".")[0] for name in names} - {*PACKAGES, *sys.stdlib_module_names}


def _with_data(sources: Collection[Path], tops: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    """Those of the files that lie in these packages, and the data beside them, by their path from what holds `tops`.

    tops: packages and their folders, or the file of a single module without its ending. Data beside it are others'.
    """
    found: dict[str, Path] = {}
    for top, place in tops:
        inside = {path for path in sources if path.is_relative_to(place)}
        data = {path for folder in {path.parent for path in inside} for path in _data(folder)}
        found |= {f"{top}/{path.relative_to(place).as_posix()}": path for path in inside | data}
        found |= {f"{top}.py": path for path in sources if path == place.with_name(f"{place.name}.py")}
    return dict(sorted(found.items()))


def _data(folder: Path) -> Iterator[Path]:
    """The data files in a folder: all but .py files, also those in subfolders that are not packages."""
    for path in folder.iterdir():
        if not counts(Path(path.name)):
            continue
        if path.is_dir() and not (path / INIT).exists():
            yield from _data(path)
        elif path.is_file() and path.suffix != ".py":
            yield path
