"""The recorded params.yaml, changes of it, and what is said of them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlanything.config import parse
from rlanything.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text())


def changed(**values: Any) -> dict[str, Any]:
    """params.yaml with dotted keys (double underscore for a dot) set to other values."""
    data = copy.deepcopy(PARAMS)
    for name, value in values.items():
        *parents, last = name.split("__")
        section = data
        for parent in parents:
            section = section[parent]
        section[last] = value
    return data


def problem(**values: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(changed(**values))
    return str(caught.value)
