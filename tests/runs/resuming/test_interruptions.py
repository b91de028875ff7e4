"""What ends a training: Ctrl-C and SIGTERM interrupt it; code that calls `sys.exit` does not."""

from __future__ import annotations

import sys

import pytest
from lightning.pytorch.utilities.exceptions import SIGTERMException

from rlanything.runs.seedrun import is_interruption


def as_lightning() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        sys.exit(1)


def as_lightning_at_sigterm() -> None:
    raise SIGTERMException


def as_an_environment() -> None:
    sys.exit(0)


@pytest.mark.parametrize(
    ("ends", "expected"), [(as_lightning, True), (as_lightning_at_sigterm, True), (as_an_environment, False)]
)
def test_only_lightnings_own_end_is_an_interruption(ends, expected):
    with pytest.raises(SystemExit) as caught:
        ends()
    assert is_interruption(caught.value) is expected
