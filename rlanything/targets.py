"""Classes that the configuration names with `_target_`: found, checked, and made. No other module does this.

A configuration may come from somebody else, and importing a module runs it. So a name is imported only when it lies in
a package of the project, among Lightning's loggers and callbacks, or in a package that the user allows for this
process. A configuration cannot allow anything itself.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Container, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from rlanything.core.errors import ConfigError, RLAnythingError, unknown
from rlanything.core.printable import one_line

TARGET = "_target_"
PROJECT = ("rlanything", "envs")
LIGHTNING = ("lightning.pytorch.loggers", "lightning.pytorch.callbacks")
ALLOW = "RLANYTHING_ALLOW"
"""The environment variable with the packages that the user allows, separated by commas."""


def permit(section: Mapping[str, Any], name: str) -> None:
    """Raise `ConfigError` unless the class of a section may be imported. Nothing is imported to find out."""
    target = str(section.get(TARGET, ""))
    if not all(part.isidentifier() and not part.startswith("_") for part in target.split(".")):
        raise ConfigError(f"{name}.{TARGET} = {target!r}: must be the dotted name of a public class")
    if not _within(target, _allowed()):
        raise ConfigError(
            f"{name}.{TARGET} = {target!r}: not imported, because it is in none of the packages "
            f"{', '.join(_allowed())}. Importing runs its code: if you trust it, allow its package with "
            f"{ALLOW}={target.partition('.')[0]} in the environment of the command"
        )


def is_ours(section: Mapping[str, Any]) -> bool:
    """Whether a section names a class of the project: its constructor only checks its arguments."""
    return _within(str(section[TARGET]), PROJECT)


def is_outside(section: Mapping[str, Any]) -> bool:
    """Whether a section names a class that is neither the project's nor Lightning's."""
    return not _within(str(section[TARGET]), (*PROJECT, *LIGHTNING))


def named_class(section: Mapping[str, Any], name: str, of: type) -> type:
    """The class that `section._target_` names; it is only imported.

    Raises `ConfigError` if it may not be imported, cannot be found, or is not `of`: a subclass, or for a protocol a
    class that has its members.
    """
    permit(section, name)
    named = f"{name}.{TARGET} = {section[TARGET]!r}"
    try:
        cls = _located(str(section[TARGET]))
    except ConfigError as error:
        raise ConfigError(f"{named}: {error}") from None
    if not isinstance(cls, type):
        raise ConfigError(f"{named}: it is a {type(cls).__name__}, and no class")
    if not _within(cls.__module__, _allowed()):
        raise ConfigError(f"{named}: it is {cls.__module__}.{cls.__qualname__}, whose package is not allowed")
    if getattr(of, "_is_protocol", False):
        lacking = [member for member in _members(of) if not hasattr(cls, member)]
        if lacking:
            raise ConfigError(f"{named}: no {of.__name__}, because it has no {', '.join(lacking)}")
    elif not issubclass(cls, of):
        raise ConfigError(f"{named}: must be a subclass of {of.__module__}.{of.__name__}")
    return cls


def named_arguments(
    section: Mapping[str, Any], cls: type, name: str, given: Container[str] = ()
) -> dict[str, Any]:
    """The section's arguments for `cls`, which gets those in `given` from the program.

    Raises `ConfigError` for a key that the constructor does not take, with the nearest name, and for classes that
    arguments name: none is made.
    """
    arguments = {key: value for key, value in section.items() if key != TARGET}
    parameters = inspect.signature(cls).parameters
    known = [parameter for parameter in parameters if parameter not in given]
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for key in arguments:
        if key not in known and (not anything or key.startswith("_")):
            raise ConfigError(f"{name}.{key}: {unknown(key, known)}")
    for place in _nested(arguments, name):
        raise ConfigError(f"{place}.{TARGET}: an argument cannot name a class, only {name} itself")
    return arguments


def require_complete(section: Mapping[str, Any], cls: type, name: str) -> None:
    """Raise `ConfigError` where the section lacks an argument that the constructor of `cls` needs."""
    try:
        inspect.signature(cls).bind(**named_arguments(section, cls, name))
    except TypeError as error:
        raise ConfigError(f"{name}: {cls.__name__}: {error}") from None


def instantiate(section: Mapping[str, Any], name: str, of: type, **given: Any) -> Any:
    """The object that `section._target_` names, with the section's keys as arguments; `of`: what it must be.

    Raises `ConfigError` for a class that `named_class` refuses, an unknown key, a refused value, a package that is not
    installed, and whatever else the constructor raises, `sys.exit` too. Errors of this project are raised as they are.
    """
    cls = named_class(section, name, of)
    arguments = named_arguments(section, cls, name, given)
    try:
        return cls(**arguments, **given)
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from None
    except RLAnythingError:
        raise
    except (Exception, SystemExit) as error:  # a constructor may raise anything
        raise ConfigError(
            f"{name}.{TARGET} = {section[TARGET]!r}: its constructor {_raised(error)}"
        ) from error


def _located(target: str) -> Any:
    """What a dotted name means. Raises `ConfigError` with the nearest name, or with what an import raised."""
    path, *rest = target.split(".")
    try:
        found = import_module(path)
        for part in rest:
            path, above = f"{path}.{part}", path
            if not hasattr(found, part) and hasattr(found, "__path__") and find_spec(path) is not None:
                import_module(path)
            if not hasattr(found, part):
                raise ConfigError(f"{above} has no {part}: {unknown(part, _inside(found))}")
            found = getattr(found, part)
    except ConfigError:
        raise
    except Exception as error:  # a module may raise anything, also when it is asked for a name
        raise ConfigError(f"importing {path} {_raised(error)}") from error
    return found


def _raised(error: BaseException) -> str:
    """What code of others raised, on one line."""
    return f"raised {type(error).__name__}: {one_line(str(error))}"


def _inside(found: Any) -> list[str]:
    """The public classes of a module or package, and the modules in a package."""
    modules = [module.name for module in iter_modules(getattr(found, "__path__", ()))]
    own = [name for name, value in vars(found).items() if isinstance(value, type) and _of(value, found)]
    return [name for name in (*modules, *own) if not name.startswith("_")]


def _of(cls: type, module: Any) -> bool:
    """Whether a class comes from a module, or from a module below it."""
    return _within(cls.__module__, (getattr(module, "__name__", ""),))


def _allowed() -> tuple[str, ...]:
    """The packages whose classes may be imported."""
    named = (package.strip() for package in os.environ.get(ALLOW, "").split(","))
    return (*PROJECT, *LIGHTNING, *filter(None, named))


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _members(protocol: type) -> list[str]:
    """The public members of a protocol: its methods, and the attributes that it declares."""
    return sorted({m for m in (*dir(protocol), *inspect.get_annotations(protocol)) if not m.startswith("_")})


def _nested(value: Any, place: str) -> Iterator[str]:
    """The places inside a value that name a class."""
    items: Any = value.items() if isinstance(value, Mapping) else ()
    if isinstance(value, list | tuple):
        items = enumerate(value)
    for key, item in items:
        if isinstance(item, Mapping) and TARGET in item:
            yield f"{place}.{key}"
        yield from _nested(item, f"{place}.{key}")
