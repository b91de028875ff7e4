"""The state file of a run: its bytes, the memory that it takes to write and read it, and a disk that is full."""

from __future__ import annotations

import errno
import io
import os
import pickle
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from trainer_cases import Stage

from rlanything.learn.trainer import StateFile

STEP = 1000
"""Bytes between two sizes at which the disk is full. A record of a small tensor has fewer."""


def some(numbers: int) -> dict[str, Any]:
    """A state with one large tensor among small ones and plain values."""
    small = {n: {"exp_avg": torch.full((3,), float(n)), "step": torch.tensor(n)} for n in range(12)}
    return {"state_dict": {"large": torch.arange(numbers)}, "optimizer_states": [small], "text": "x" * 700}


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Within it no file of this process may grow above `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_its_bytes_are_those_of_a_state_that_is_saved_in_memory(tmp_path):
    """They depend on no name of the file, and on nothing that writes it."""
    data = io.BytesIO()
    torch.save(some(20_000), data)
    for name in ("state.ckpt", "another name"):
        StateFile().save_checkpoint(some(20_000), tmp_path / name)
        assert (tmp_path / name).read_bytes() == data.getvalue()


def test_no_copy_of_the_state_is_made_in_memory(tmp_path):
    state = some(1_000_000)
    tracemalloc.start()
    try:
        StateFile().save_checkpoint(state, tmp_path / "state.ckpt")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = (tmp_path / "state.ckpt").stat().st_size
    assert size > 8_000_000
    assert most < size / 20


def resident(path: Path) -> int:
    """Bytes of the file that this process has in memory and shares with whoever else reads it, and its own."""
    (mapped,) = (m for m in psutil.Process().memory_maps() if m.path == str(path))
    return mapped.private_dirty + mapped.rss


def test_only_what_is_used_is_read_and_a_change_stays_in_the_process(tmp_path):
    path = tmp_path / "state.ckpt"
    StateFile().save_checkpoint(some(4_000_000), path)
    before = path.read_bytes()
    loaded = StateFile().load_checkpoint(path, weights_only=True)
    assert resident(path) < len(before) / 10
    large = loaded["state_dict"]["large"]
    large[:1000] += 1
    assert large[:3].tolist() == [1, 2, 3]
    assert resident(path) < len(before) / 10
    assert int(large[1000:].sum()) == sum(range(1000, 4_000_000))
    assert resident(path) > len(before) / 2
    assert path.read_bytes() == before
    path.unlink()  # a run removes old state files while it goes on
    assert int(large[:1000].sum()) == sum(range(1001))


def test_a_disk_that_is_full_at_any_point_is_an_error_of_the_system(tmp_path):
    """`torch.save` by itself raises an error of its own at most points, and it names no reason."""
    state, path = some(4000), tmp_path / "state.ckpt"
    StateFile().save_checkpoint(state, path)
    size = path.stat().st_size
    for most in (*range(0, size, STEP), size - 1):
        path.unlink()
        with limited(most), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            StateFile().save_checkpoint(state, path)
    with limited(size):
        StateFile().save_checkpoint(state, path)


def test_what_cannot_be_saved_keeps_its_error(tmp_path):
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        StateFile().save_checkpoint({"a function": lambda: None}, tmp_path / "state.ckpt")


def test_a_training_goes_on_from_it_with_the_same_bits(tmp_path: Path):
    whole = Stage().fit(2, tmp_path)
    again = Stage().fit(2, resume=tmp_path / "1.ckpt")
    assert again.totals == whole.totals[1:]
    assert all(torch.equal(again.weights()[name], of) for name, of in whole.weights().items())
