"""Classes that the configuration names with `_target_`: found, checked, and made. No other module does this."""

from __future__ import annotations

import inspect
from collections.abc import Container, Mapping
from typing import Any

from rlanything.core.errors import ConfigError, unknown


def is_argument(key: str) -> bool:
    """Whether a section's key is for the constructor. Those that begin with an underscore are not, as in Hydra."""
    return not key.startswith("_")


def named_class(section: Mapping[str, Any], name: str, of: type = object) -> type:
    """The class that `section._target_` names. Raises `ConfigError` if there is none, or it is not `of`."""
    from hydra.utils import get_class

    try:
        cls: type = get_class(section["_target_"])
    except Exception as error:  # Hydra wraps whatever the import raises
        raise ConfigError(f"{name}._target_ = {section['_target_']!r}: {error}") from None
    if not issubclass(cls, of):
        raise ConfigError(
            f"{name}._target_ = {section['_target_']!r}: must be a subclass of {of.__module__}.{of.__name__}"
        )
    return cls


def named_arguments(
    section: Mapping[str, Any], cls: type, name: str, given: Container[str] = ()
) -> dict[str, Any]:
    """The section's arguments for `cls`, which gets those in `given` from the program.

    Raises `ConfigError` for a key that the constructor does not take; the nearest name is offered.
    """
    arguments = {key: value for key, value in section.items() if is_argument(key)}
    parameters = inspect.signature(cls).parameters
    known = [parameter for parameter in parameters if parameter not in given]
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for key in arguments:
        if key not in known and not anything:
            raise ConfigError(f"{name}.{key}: {unknown(key, known)}")
    return arguments


def instantiate(section: Mapping[str, Any], name: str, *, of: type = object, **given: Any) -> Any:
    """The object that `section._target_` names, with the section's keys as arguments; `of`: what it must be.

    Raises `ConfigError` for a class that cannot be found or is not `of`, an unknown key, a refused value, or a package
    that is not installed.
    """
    cls = named_class(section, name, of)
    arguments = named_arguments(section, cls, name, given)
    try:
        return cls(**arguments, **given)
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from None
