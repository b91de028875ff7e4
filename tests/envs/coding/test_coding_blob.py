"""Packed private tests: read without ever running what is in them."""

from __future__ import annotations

import base64
import os
import pickle
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.formats.blob import pack, unpack


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@given(text=st.text(max_size=300))
def test_round_trip(text: str) -> None:
    assert unpack(pack(text)) == text


@given(text=st.text("ab\n\\é\u20ac", max_size=300), protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_every_protocol_of_the_real_pickle(text: str, protocol: int) -> None:
    assert unpack(packed(pickle.dumps(text, protocol))) == text


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_a_command_is_refused_and_does_not(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    data = pickle.dumps(Bomb(path), protocol)
    with pytest.raises(ValueError, match="only one text is read from a pickle"):
        unpack(packed(data))
    assert not path.exists()
    pickle.loads(data)  # it is a bomb indeed
    assert path.exists()


@pytest.mark.parametrize("value", [b"bytes", 5, None, ["a"], {"a": 1}, ("a", "b"), 1.5])
def test_any_other_value_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="pickle"):
        unpack(packed(pickle.dumps(value)))


@pytest.mark.parametrize(
    ("blob", "said"),
    [
        ("***", "not base64"),
        (base64.b64encode(b"plain").decode(), "not zlib"),
        (base64.b64encode(zlib.compress(pickle.dumps("abc"))[:-6]).decode(), "cut off"),
        (base64.b64encode(zlib.compress(pickle.dumps("abc")) + b"more").decode(), "something follows"),
        (packed(pickle.dumps("abc") + b"more"), "more after its end"),
        (packed(b""), "not a pickle"),
        (packed(b"X\xff\xff\xff\x7fabc."), "not a pickle"),
    ],
)
def test_what_is_wrong_is_said(blob: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        unpack(blob)


def test_a_bomb_of_zeros_stops_at_the_limit() -> None:
    blob = packed(pickle.dumps("0" * 5_000_000))
    assert len(blob) < 10_000
    with pytest.raises(ValueError, match="more than 1000000 bytes"):
        unpack(blob, most_bytes=1_000_000)


@settings(max_examples=300)
@given(data=st.binary(max_size=40))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for blob in (base64.b64encode(data).decode(), packed(data)):
        try:
            assert isinstance(unpack(blob), str)
        except ValueError:
            continue
