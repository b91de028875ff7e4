"""A project with tasks and barely trained models, and a run of it, for all tests that need the real loop's work."""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import shutil
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from functools import cache
from importlib import metadata
from io import StringIO, TextIOWrapper
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import settings
from omegaconf import OmegaConf
from stage_cases import ROOT, small, small_coding
from yaml import YAMLError, safe_dump

from benchmarks.pages.browser import opened
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.runs import imports

ARM = "full"
# A busy machine takes longer for an example than Hypothesis allows, and that is no failure.
settings.register_profile("busy", settings(), deadline=None)
settings.load_profile("busy")


def pytest_configure() -> None:
    """Under `nohup`, and in the background of a script, SIGINT is ignored, and a process inherits that. What tests
    interrupt would go on for ever. Under `make test`, a `make` that a test starts would take its options and variables
    from the one above it, and print the folder that it enters."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"):
        os.environ.pop(name, None)


SHOWN = 80  # characters of a parameter in the name of a test


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A long text names its case by its beginning only: one of 16 MB would fill every report of the tests."""
    if isinstance(val, bytes) and len(val) > SHOWN:
        return f"{argname}: {len(val)} bytes"
    if isinstance(val, str) and len(val) > SHOWN:
        return f"{argname}: {ascii(val[:SHOWN])[1:-1]}..."
    return None


def pytest_collectstart() -> None:
    """The garbage collector would go through a million objects of torch and of the tests again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """The objects of imports and of collected tests stay to the end: the garbage collector need not look at them."""
    gc.freeze()
    gc.enable()


SHARED = {
    *("checks", "golden", "pipeline", "repro", "report", "stages", "sweep", "view"),
    *("test_benchmarks.py", "test_docs.py"),
}
"""Files, and folders whose files make a project, train a model or start a browser for all of their tests."""
ALONE = ("test_golden_runs.py", "test_report_stage.py", "test_sweep_worker.py")
"""Files there whose tests take seconds and share little."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in its own hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups for xdist, and modules with costly tests first: cheap ones then fill the last seconds of both workers."""
    for item in items:
        if name := group(item):
            item.add_marker(pytest.mark.xdist_group(name))
    if "PYTEST_XDIST_WORKER" in os.environ:
        marks = "integration", "xdist_group"
        costly = {item.path for item in items if any(map(item.get_closest_marker, marks))}
        items.sort(key=lambda item: item.path not in costly)


def group(item: pytest.Item) -> str | None:
    """One worker has all tests that share a fixture: making a project takes a minute or more."""
    fixtures, folders = getattr(item, "fixturenames", ()), item.path.relative_to(ROOT).parts
    if "coding_project" in fixtures:
        return "coding"
    if "pipeline" in folders and "finished" in fixtures:
        return "pipeline"
    return item.path.stem if SHARED & set(folders) and item.path.name not in ALONE else None


@pytest.fixture(scope="session", autouse=True)
def composed_once() -> Iterator[dict[str, Callable[..., Any]]]:
    """The repository's experiments/ are composed once for the same overrides: each time takes a quarter of a second.

    The keys that overrides may have are found once for the same groups.

    No test changes these files. Other folders are composed anew, and so are all in tests/planning/test_compose.py, by
    the functions that are given here under their names.
    """
    real, real_keys, own = compose._compose, compose._known_keys, (ROOT / compose.FOLDER).resolve()

    @cache
    def known(overrides: tuple[str, ...]) -> dict[str, Any]:
        return real(own, overrides, compose._parse_overrides(overrides, own))

    def composed(folder: Path, overrides: Sequence[str], parsed: Sequence[Any]) -> dict[str, Any]:
        return deepcopy(known(tuple(overrides))) if folder == own else real(folder, overrides, parsed)

    @cache
    def known_keys(chosen: tuple[str, ...]) -> list[str]:
        return real_keys(own, chosen)

    def keys(folder: Path, chosen: Sequence[str]) -> list[str]:
        return known_keys(tuple(chosen)) if folder == own else real_keys(folder, chosen)

    compose._compose, compose._known_keys = composed, keys
    yield {"_compose": real, "_known_keys": real_keys}
    compose._compose, compose._known_keys = real, real_keys


@pytest.fixture(scope="session", autouse=True)
def parsed_once() -> Iterator[None]:
    """The same text of a file is parsed once for all configurations: that is half of what composing takes."""
    parsed = OmegaConf.load

    @cache
    def known(text: str) -> bytes:
        return pickle.dumps(parsed(StringIO(text)))

    def load(file: Any) -> Any:
        if not isinstance(file, TextIOWrapper):
            return parsed(file)
        try:
            return pickle.loads(
                known(file.read())
            )  # an object of each caller's own: Hydra changes what it is given
        except YAMLError:
            file.seek(0)
            return parsed(file)  # its message names the file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OmegaConf, "load", staticmethod(load))
        yield


@pytest.fixture(scope="session", autouse=True)
def looked_up_once() -> Iterator[None]:
    """What the repository's code imports, and what is installed, is read once: no test changes it.

    Every training asks for both several times. A copy of the code is read anew."""
    reached, own = imports._reached, imports.package_folder
    parsed = metadata.PathDistribution.metadata.fget

    @cache
    def known(names: tuple[str, ...], without: tuple[str, ...]) -> dict[str, Path]:
        return reached(names, without)

    @cache
    def read(place: Path) -> metadata.PackageMetadata:
        return parsed(metadata.PathDistribution(place))

    def found(names: Iterable[str], without: Collection[str] = ()) -> dict[str, Path]:
        here = imports.package_folder is own
        return {**known(tuple(names), tuple(without))} if here else reached(names, without)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imports, "_reached", found)
        patch.setattr(metadata.PathDistribution, "metadata", property(lambda self: read(self._path)))
        yield


MadeOnce = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> MadeOnce:
    """Gives a folder by its name, which the first worker of xdist to need it makes for all of them."""
    base = tmp_path_factory.getbasetemp()
    place = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, make: Callable[[Path], None]) -> Path:
        root, made = place / name, place / f"{name}.made"
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(root, ignore_errors=True)
                root.mkdir()
                make(root)
                made.touch()
        return root

    return folder


@pytest.fixture(scope="session")
def tiny_project(made_once) -> Path:
    """A folder with experiments/, data/ and models/; not to be changed."""
    from rlanything.stages import tasks
    from rlanything.stages.bootstrap.stage import make_models

    def make(root: Path) -> None:
        (root / "experiments").symlink_to(ROOT / "experiments")
        tasks.make_tasks(small(), root)
        make_models(small(), root)

    return made_once("tiny", make)


@pytest.fixture(scope="session")
def undisturbed(tiny_project, made_once) -> Path:
    """The run folder of a training of arm `full` that nobody killed, in a project of its own; not to be changed."""
    from rlanything.runs.layout import Layout
    from rlanything.stages import train

    def make(root: Path) -> None:
        shutil.copytree(tiny_project, root, symlinks=True, dirs_exist_ok=True)
        train.train_arm(small(), root, ARM)

    return Layout(made_once("undisturbed", make)).run(ARM, 0)


@pytest.fixture
def finished_project(undisturbed, tmp_path) -> Path:
    """A copy of the project of `undisturbed`, with its params.yaml. A test may change it."""
    root = tmp_path / "project"
    shutil.copytree(undisturbed.parents[2], root, symlinks=True)
    (root / "params.yaml").write_text(safe_dump(small().model_dump(mode="json", by_alias=True)))
    return root


@pytest.fixture(scope="session")
def coding_project(tmp_path_factory) -> Path:
    """A folder with tasks, models and a finished run of arm `full` of the coding setting; not to be changed."""
    from envs.coding.family import CodingFamily
    from envs.coding.sandbox import SandboxError
    from rlanything.stages import tasks, train
    from rlanything.stages.bootstrap.stage import make_models

    family = CodingFamily()
    try:
        family.sandbox()
    except SandboxError as error:
        pytest.skip(f"no sandbox here: {error}")
    family.close()
    root = tmp_path_factory.mktemp("coding")
    (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(small_coding(), root)
    make_models(small_coding(), root)
    train.train_arm(small_coding(), root, ARM)
    return root


@pytest.fixture
def memory(tmp_path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs take long on a disk, and prove nothing more there."""
    shared = Path("/dev/shm")
    folder = Path(mkdtemp(dir=shared)) if shared.is_dir() else tmp_path
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")  # while it is there, its event loop runs, and no test can start another one
def browser():
    with ExitStack() as stack:
        try:
            started = stack.enter_context(opened())
        except ConfigError as error:
            pytest.skip(str(error))
        yield started


@pytest.fixture
def tab(browser):
    """A tab that notes what went wrong in it, and what it asked for."""
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.problems, opened.requests = [], []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on("console", lambda line: opened.problems.append(line.text))
    opened.on("request", lambda request: opened.requests.append(request.url))
    yield opened
    opened.close()
