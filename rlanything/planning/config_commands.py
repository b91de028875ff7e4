"""The command `config`: compose, check and show the configuration, and take it back to what is recorded."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe, tell
from rlanything.files.project import PARAMS
from rlanything.parser import Subparsers, is_override
from rlanything.planning.commands import (
    configuration,
    params_file,
    refuse_params,
    say_uncommitted,
    warn,
)

if TYPE_CHECKING:
    from rlanything.config import Config


def add_config(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command `config`."""
    config = commands.add_parser("config", help="compose, check and show the configuration")
    actions = config.add_subparsers(title="actions", required=True, metavar="ACTION")
    write = actions.add_parser("write", help="compose experiments/ and overrides into params.yaml")
    write.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="a new file, or one that this command wrote; default: params.yaml",
    )
    show = actions.add_parser(
        "show",
        help="print the composition, or without key=value the file of --params or --workspace; writes nothing",
    )
    for action, run in ((write, _config_write), (show, _config_show)):
        action.add_argument(
            "overrides", nargs="*", metavar="key=value", help="e.g. scale=smoke signals.lambda=0.5"
        )
        action.set_defaults(run=run)
    check = actions.add_parser("check", help="check a configuration; prints every problem")
    check.add_argument(
        "what", nargs="*", metavar="FILE | key=value", help="a file, or a composition; default: params.yaml"
    )
    check.set_defaults(run=_config_check)
    comments = actions.add_parser(
        "comments", help="write the sources of values (rlanything/config/sources/) into experiments/"
    )
    comments.set_defaults(run=_config_comments)
    pipeline = actions.add_parser(
        "pipeline", help="bring dvc.yaml up to date with stages, imports and params.yaml"
    )
    pipeline.set_defaults(run=_config_pipeline)
    _add_restore(actions)


def _add_restore(actions: Subparsers[argparse.ArgumentParser]) -> None:
    restore = actions.add_parser(
        "restore", help="take params.yaml, dvc.lock and the results back to the last commit"
    )
    restore.add_argument(
        "--force", action="store_true", help="also where results are replaced that DVC's cache does not have"
    )
    restore.set_defaults(run=_config_restore)


def _config_write(args: argparse.Namespace) -> int:
    from rlanything.planning import compose, dvcfile

    path = args.output or params_file(args)
    require_place(path, args.root, "--output" if args.output else "--params")
    config = compose.write(path, args.overrides, args.root)
    print(safe(f"wrote {path} (scale {config.scale})"))
    warn(config, args.root)
    _warn_of_data(config)
    own = path.resolve() == (args.root / PARAMS).resolve()
    if own and (args.root / dvcfile.NAME).is_file() and dvcfile.write(args.root, config):
        print(f"wrote {dvcfile.NAME}, because the stages depend on something else now")
    return 0


def require_place(path: Path, root: Path, option: str) -> None:
    """Raise `UserError` for a place that holds another file than a composed one. The project's own may be replaced.

    option: of the command line, which names the place.
    """
    from rlanything.buffer.views.place import free_place

    if path.resolve() != (root / PARAMS).resolve():
        free_place(path, _not_composed, option)


def _not_composed(file: Path) -> str:
    from rlanything.planning import compose

    if file.is_dir():
        return "is a folder; name a file, e.g. trial.yaml"
    if compose.is_composed(file):
        return ""
    return "exists and is no file that `config write` wrote; name another one"


def _warn_of_data(config: Config) -> None:
    """Print which files of the user the tasks come from and are not there, and what else `config check` warns of.

    Another machine may have the files.
    """
    from rlanything.planning import check

    try:
        _warn_of_open(config)
        check.stored(config)
    except ConfigError as error:
        tell(f"warning: {error}")


def _warn_of_open(config: Config) -> None:
    from rlanything.planning import check

    for text in check.left_open(config):
        tell(f"warning: {text}")


def _config_show(args: argparse.Namespace) -> int:
    from rlanything.config import load, parse
    from rlanything.files.reader import read_text
    from rlanything.planning import compose

    if args.overrides:
        refuse_params(args)
    elif args.params is not None or args.within:
        load(params_file(args))
        print(read_text(params_file(args)), end="")
        return 0
    data = compose.compose(args.overrides, args.root)
    parse(data)
    print(compose.text(data, args.overrides), end="")
    return 0


def _config_check(args: argparse.Namespace) -> int:
    from rlanything.config import parse
    from rlanything.planning import check, checkpoints, compose
    from rlanything.runs.layout import Layout

    path: Path | None = None
    if any(is_override(word) for word in args.what):
        refuse_params(args)
        named, config = " ".join(args.what), parse(compose.compose(args.what, args.root))
        check.check(config, args.root)
    elif len(args.what) > 1:
        raise ConfigError(f"config check {' '.join(args.what)}: takes one FILE, or key=value")
    else:
        path = Path(args.what[0]) if args.what else params_file(args)
        if args.what and args.params is not None:
            raise ConfigError(f"--params {args.params}: {path} is checked; leave one of them")
        if not path.exists() and path.suffix not in (".yaml", ".yml"):
            raise ConfigError(f"config check {path}: no such file; a value is written {path}=VALUE")
        named, config = str(path), check.read(path, args.root)
    if path is None or not Layout(path.parent).manifest.is_file():
        check.stored(config)
    check.machine(config)
    checkpoints.check(config, args.root)
    warn(config, args.root)
    _warn_of_open(config)
    print(safe(f"{named}: valid (scale {config.scale}, arms {', '.join(config.arms)})"))
    if path is not None:
        say_uncommitted(path)
    return 0


def _config_comments(args: argparse.Namespace) -> int:
    from rlanything.planning import comments
    from rlanything.planning.compose import FOLDER

    changed = comments.write(args.root / FOLDER)
    print("\n".join(f"{path}: written" for path in changed) or f"{FOLDER}/: up to date")
    return 0


def _config_pipeline(args: argparse.Namespace) -> int:
    from rlanything.planning import dvcfile

    changed = dvcfile.write(args.root, configuration(args, engine=False))
    say_uncommitted(params_file(args))
    print(f"{dvcfile.NAME}: {'written' if changed else 'up to date'}")
    return 0


def _config_restore(args: argparse.Namespace) -> int:
    from rlanything.planning import restore

    for line in restore.restore(args.root.resolve(), force=args.force):
        print(line)
    return 0
