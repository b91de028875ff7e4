"""Composes the Hydra groups in experiments/ and overrides into one configuration file, params.yaml.

`dvc repro` only reads params.yaml. So the file is written by `rlanything config write` and committed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlanything.config import Config, parse, size_key
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.printable import safe, safe_lines, shown
from rlanything.files.atomic import write_text
from rlanything.files.reader import opened
from rlanything.planning import check, disclosed

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

FOLDER = "experiments"
ARM = "arm"
PANELS = "tasks.panels."
REMOVABLE = (("tasks", "panels"), ("evaluate", "judges"))
"""Places whose entries have names of their own, so that null removes one."""
NO_CHOICES = ("setting", "sweep", "check")
"""Folders of experiments/ whose files are not chosen as options. Environment and scale determine the setting.

Sweeps and checks have their own commands."""
SHORT = ("path",)
"""Keys that files of experiments/ make several others of (model=local). No stage reads them."""
HEADER = """\
# The composed configuration that every stage reads. Written by
#     {command}
# Do not edit: change experiments/, where every key is explained, or pass overrides, and write it again.
"""


def compose(overrides: Sequence[str] = (), root: Path = Path()) -> dict[str, Any]:
    """The configuration as a plain mapping, with interpolations resolved and sections in the order of `Config`.

    Args:
        overrides: Hydra's `key=value`, `group=option`, `+group@place=option`.
        root: the folder that holds experiments/.

    Raises:
        ConfigError: for an override that Hydra cannot read, or that names no known key, group or option.
    """
    for text in overrides:
        if safe(text) != text:  # the header of params.yaml has the command on a line of its own
            raise ConfigError(
                f"override '{safe(text)}': has a line break or another character that cannot be seen; write the "
                f"value into a file of {FOLDER}/"
            )
    folder = (root / FOLDER).resolve()
    if not (folder / "config.yaml").is_file():
        raise ConfigError(
            f"{folder}/config.yaml: no such file; run this in the project's folder, or use --root"
        )
    parsed = _parse_overrides(overrides, folder)
    for override in parsed:
        _check_option(folder, override)
    data = _without_removed(_compose(folder, overrides, parsed))
    for name in SHORT:
        data.pop(name, None)
    return {name: data[name] for name in [*Config.model_fields, *data] if name in data}


def _without_removed(data: dict[str, Any]) -> dict[str, Any]:
    """The configuration without panels and judges that are null. A file removes one by setting it to null."""
    for section, named in REMOVABLE:
        found = data.get(section)
        if isinstance(found, dict) and isinstance(found.get(named), dict):
            kept = {name: value for name, value in found[named].items() if value is not None}
            data = data | {section: found | {named: kept}}
    return data


def write(path: Path, overrides: Sequence[str] = (), root: Path = Path()) -> Config:
    """Compose and check the configuration, then write `path` atomically.

    Raises `ConfigError` and writes nothing if it is invalid.
    """
    data = compose(overrides, root)
    config = checked(data, root)
    write_text(path, text(data, overrides))
    return config


def is_composed(path: Path) -> bool:
    """Whether a file begins as `text` does. Raises `FileError` for one that is no regular file."""
    start = HEADER.partition("{command}")[0].encode()
    with opened(path) as file:
        return file.read(len(start)) == start


def checked(data: Mapping[str, Any], root: Path = Path()) -> Config:
    """The configuration of a composition, checked but for the engine. Raises `ConfigError`."""
    config = parse(dict(data))
    check.check(config, root, engine=False)
    return config


def text(data: Mapping[str, Any], overrides: Sequence[str] = ()) -> str:
    """The text of params.yaml, with a header that names the command that writes it."""
    import yaml

    command = shlex.join(["rlanything", "config", "write", *overrides])

    def body(allow_unicode: bool) -> str:
        return str(yaml.safe_dump(dict(data), sort_keys=False, width=110, allow_unicode=allow_unicode))

    plain = body(True)
    seen = safe_lines(plain) == plain  # otherwise a terminal or an editor would hide or turn what it shows
    return HEADER.format(command=command) + (plain if seen else body(False))


def options(root: Path = Path()) -> dict[str, list[str]]:
    """Every Hydra group in experiments/ that has options to choose from: group -> options."""
    folder = root / FOLDER
    groups = sorted(p for p in folder.iterdir() if p.name not in NO_CHOICES and any(p.glob("*.yaml")))
    return {group.name: sorted(path.stem for path in group.glob("*.yaml")) for group in groups}


def _parse_overrides(overrides: Sequence[str], folder: Path) -> list[Override]:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    result = []
    for override in overrides:
        try:
            result.append(parser.parse_override(override))
        except HydraException as error:
            reason = f" ({str(error).splitlines()[0]})" if "=" in override else ", e.g. signals.lambda=0.5"
            hint = _arm(override, folder) or _quoted(override)
            raise ConfigError(f"override {override!r}: expected key=value{reason}{hint}") from None
        except ValueError as error:  # a number of more digits than Python reads
            raise ConfigError(f"override {shown(override)}: {error}") from None
        if result[-1].is_sweep_override():
            raise ConfigError(
                f"override {override!r}: several values, and one is expected; a list is written key=[a,b], and "
                "`rlanything sweep` tries many values"
            )
    return result


def _arm(name: str, folder: Path) -> str:
    """How an arm is chosen, where a word is the name of one; else ''."""
    known = options(folder.parent).get(ARM, [])
    return f"; an arm is chosen with --{ARM} {name}" if name in known else ""


def _quoted(override: str) -> str:
    """How an override is written whose value is a text with signs of Hydra's grammar, such as { or =."""
    key, equals, value = override.partition("=")
    if not (key and equals and value) or '"' in value:
        return ""
    quoted = f'{key}="{value}"'
    return f"; a text with such signs stands in quotes of its own: {shlex.quote(quoted)}"


def _check_option(folder: Path, override: Override) -> None:
    """Raise `ConfigError` when the override picks an option that its group does not have."""
    known = options(folder.parent).get(override.key_or_group)
    if known is None or override.is_delete():
        return
    value = override.value()
    for option in value if isinstance(value, list) else [value]:
        if option not in known:
            raise ConfigError(f"{override.get_key_element()} = {option!r}: {unknown(str(option), known)}")
    if override.get_key_element() == ARM:  # each arm has a place of its own, so the group alone names none
        raise ConfigError(
            f"override '{ARM}={value}': an experiment has several arms; a command takes one with --{ARM} {value}, "
            f"and +{ARM}@arms.{value}={value} adds one to the experiment"
        )


def _compose(folder: Path, overrides: Sequence[str], parsed: Sequence[Override]) -> dict[str, Any]:
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with hydra.initialize_config_dir(version_base="1.3", config_dir=str(folder)):
            _check_keys(folder, parsed)
            composed = hydra.compose("config", overrides=list(overrides))
        raw = OmegaConf.to_container(composed)
        assert isinstance(raw, dict)
        disclosed.check_interpolations({str(key): value for key, value in raw.items()})
        data = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{folder.name}/ with {list(overrides)} does not compose: {reason}") from None
    assert isinstance(data, dict)
    return {str(key): value for key, value in data.items()}


def _check_keys(folder: Path, parsed: Sequence[Override]) -> None:
    """Raise `ConfigError` for overrides of keys that do not exist in the configuration of the chosen groups."""
    groups = options(folder.parent)
    of_keys = [o for o in parsed if o.key_or_group not in groups and not o.is_add()]
    if not of_keys:
        return
    chosen = [o.input_line for o in parsed if o.key_or_group in groups and o.input_line is not None]
    known = _known_keys(folder, chosen)
    for override in of_keys:
        if (name := override.key_or_group) not in known:
            raise ConfigError(
                f"override {override.input_line!r}: {_panel(name, known) or _nearest(name, known)}"
            )


def _known_keys(folder: Path, chosen: Sequence[str]) -> list[str]:
    """The keys of the configuration of the chosen groups. `folder` is the one that Hydra has opened."""
    import hydra
    from omegaconf import OmegaConf

    base = OmegaConf.to_container(hydra.compose("config", overrides=list(chosen)))
    assert isinstance(base, dict)
    return list(_keys(_without_removed({str(key): value for key, value in base.items()})))


def _panel(name: str, known: Sequence[str]) -> str:
    """What is wrong with a key of a panel, or ''."""
    section, _, rest = name.partition(".")
    if section != "tasks" or not rest:
        return ""
    panels = [key.removeprefix(PANELS) for key in known if key.startswith(PANELS) and key.count(".") == 2]
    if rest in panels:
        return f"unknown; {size_key(rest)}"
    panel = rest.removeprefix("panels.").partition(".")[0]
    if rest.startswith("panels.") and panel not in panels:
        return f"{PANELS}{panel}: {unknown(panel, panels)}; with + before it the override declares a panel"
    return ""


def _nearest(name: str, known: Sequence[str]) -> str:
    """A suggestion for an unknown key: a key of the same section that is spelled like it, the key whose sections are,
    then keys with the same last word, otherwise the keys of the nearest section that there is."""
    parent, _, last = name.rpartition(".")
    beside = _within(parent, known)
    if parent and get_close_matches(last, [key.rpartition(".")[2] for key in beside], n=1, cutoff=0.75):
        return unknown(name, beside)
    if parent and (spelled := _spelled_like(name, known)):
        return f"unknown; did you mean {spelled!r}?"
    elsewhere = [key for key in known if key.rpartition(".")[2] == last]
    if elsewhere:
        return f"unknown; did you mean {' or '.join(repr(key) for key in elsewhere)}?"
    while parent and parent not in known:
        parent = parent.rpartition(".")[0]
    return unknown(name, _within(parent, known))


def _within(section: str, known: Sequence[str]) -> list[str]:
    """The keys of a section; those that have none for ''."""
    return [key for key in known if key.rpartition(".")[0] == section]


def _spelled_like(name: str, known: Sequence[str]) -> str:
    """The key of which every word is that of `name`, or the nearest one in its section; '' where there is none."""
    found = ""
    for word in name.split("."):
        words = [key.rpartition(".")[2] for key in _within(found, known)]
        near = [word] if word in words else get_close_matches(word, words, n=1)
        if not near:
            return ""
        found = f"{found}.{near[0]}".removeprefix(".")
    return found


def _keys(data: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in data.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")
