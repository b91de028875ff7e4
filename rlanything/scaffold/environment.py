"""Makes an environment that works: its package in envs/, its tests, and its file in experiments/env/.

They appear one after the other, each of them whole, and the file that makes the environment known comes last. When one
cannot be written, none of them stays. After a kill the same command makes what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rlanything.core.errors import ConfigError
from rlanything.files import atomic
from rlanything.scaffold.names import check_name, title
from rlanything.workspaces import places

TEMPLATES = Path(__file__).with_name("templates")
PACKAGE = {
    "__init__.py": "init.py.jinja",
    "environment.py": "environment.py.jinja",
    "family.py": "family.py.jinja",
    "teacher.py": "teacher.py.jinja",
    "README.md": "README.md.jinja",
}
"""Files of the package, and the templates that they are made from."""
Texts = Mapping[str, str]
"""Names of files in one folder, and what they hold."""


def make_environment(root: Path, name: str) -> list[Path]:
    """Make an environment in the project at `root`. Returns its files, relative to `root`.

    Raises `ConfigError` for a name that it cannot have, for files that exist, and outside a project; `OSError` for
    what cannot be written. In both cases nothing has changed.
    """
    _check_project(root)
    check_name(name, root)
    folders, file, text = _rendered(name)
    _check_free(root, {**folders, file: text})
    _check_tests(root, name)
    made: list[Path] = []
    try:
        for folder, texts in folders.items():
            if not (root / folder).exists():
                made.append(root / folder)
                _write(root / folder, texts)
        atomic.write_text(root / file, text)
    except BaseException:
        for place in made:
            atomic.clear(place)
        raise
    return [*(folder / each for folder, texts in folders.items() for each in texts), file]


def _rendered(name: str) -> tuple[dict[Path, Texts], Path, str]:
    """The new folders with their files; the file of the configuration and its text."""
    source = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # the texts are Python, YAML and Markdown, and the name has been checked
    )

    def text(template: str) -> str:
        return source.get_template(template).render(name=name, title=title(name))

    folders: dict[Path, Texts] = {
        Path("envs", name): {file: text(template) for file, template in PACKAGE.items()},
        Path("tests", "envs", name): {f"test_{name}.py": text("test.py.jinja")},
    }
    return folders, Path("experiments", "env", f"{name}.yaml"), text("experiment.yaml.jinja")


def _write(folder: Path, texts: Texts) -> None:
    with atomic.whole(folder) as temporary:
        for file, text in texts.items():
            (temporary / file).write_text(text, encoding="utf-8")


def _check_project(root: Path) -> None:
    """Raise `ConfigError` unless `root` is a project with sources of its own."""
    for place in (Path("experiments", "config.yaml"), Path("envs", "__init__.py")):
        if not (root / place).is_file():
            raise ConfigError(
                f"{root.resolve()}: no project, because it has no {place}; run this in the project's folder, or use "
                "--root"
            )
    linked = [name for name in ("envs", "experiments") if (root / name).is_symlink()]
    if linked or places.name_of(root):
        raise ConfigError(
            f"{root.resolve()}: a workspace, whose sources are those of a project; environments are made in the project"
        )


def _check_free(root: Path, wanted: Mapping[Path, Texts | str]) -> None:
    """Raise `ConfigError` unless every place is free and can be written.

    What a killed command has made is no obstacle: places that hold what would be written, while others are missing.
    """
    there = [place for place in wanted if (root / place).exists() or (root / place).is_symlink()]
    for place in there:
        if len(there) == len(wanted) or not _same(root / place, wanted[place]):
            raise ConfigError(f"{root / place}: exists; choose another name, or remove it")
    for place in wanted:
        atomic.check_writable((root / place).parent)


def _check_tests(root: Path, name: str) -> None:
    """Raise `ConfigError` when another folder has a test module of this name, which pytest refuses to run."""
    module = f"test_{name}.py"
    for path in sorted((root / "tests").rglob(module)):
        if path.parent != root / "tests" / "envs" / name:
            raise ConfigError(
                f"environment {name!r}: pytest runs one {module}, and {path} exists; choose another name"
            )


def _same(place: Path, wanted: Texts | str) -> bool:
    """Whether a file or a folder holds what would be written there."""
    if isinstance(wanted, str):
        return place.is_file() and place.read_bytes() == wanted.encode()
    return all(_same(place / file, text) for file, text in wanted.items())
