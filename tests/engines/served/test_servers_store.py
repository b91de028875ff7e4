"""The weights that servers read: written one tensor after the other, in the place of the last ones."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping

import engine_cases as cases
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from rlanything.engines.vllm.served.store import Store

SIZE = 12_347
"""Numbers of each tensor of `Lazy`, as no other tensor of this process has."""


class Lazy(Mapping[str, Tensor]):
    """A state whose tensors are made when they are asked for. noted: called before one is made."""

    def __init__(self, noted: Callable[[], object]) -> None:
        self._noted = noted

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[str]:
        return iter(f"layer {number}" for number in range(len(self)))

    def __getitem__(self, name: str) -> Tensor:
        self._noted()
        return torch.full((SIZE,), float(name[-1]))


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    found = Store(cases.qwen2(), torch.bfloat16, str(tmp_path))
    yield found
    found.close()


def tensors() -> int:
    """How many tensors there are of those that `Lazy` makes, with copies of them."""
    return sum(type(each) is Tensor and each.numel() == SIZE for each in gc.get_objects())


def files(store: Store) -> list[str]:
    return sorted(path.name for path in store.model.glob("model*"))


def test_one_tensor_is_in_memory_at_a_time_and_one_file_on_the_disk(store):
    held: list[int] = []
    there: list[list[str]] = []
    for _ in range(2):
        folder = store.write(Lazy(lambda: (held.append(tensors()), there.append(files(store)))))
        assert files(store) == ["model.safetensors"]
    assert set(held) == {0}
    assert all(names in ([], ["model.safetensors.part"]) for names in there)
    state = load_file(folder / "model.safetensors")
    assert {name: (float(x[0]), x.numel(), x.dtype) for name, x in state.items()} == {
        f"layer {number}": (number, SIZE, torch.bfloat16) for number in range(6)
    }


def test_tensors_of_every_kind_are_read_as_they_were(store, tmp_path):
    shared = torch.randn(5, 7)
    state = {
        "turned": shared.t(),
        "tied": shared,
        "part": shared[1:3, ::2],
        "alone": torch.tensor(3.5),
        "none": torch.empty(0, 4),
        "half": torch.randn(3).half(),
        "ids": torch.arange(5),
        "flags": torch.tensor([True, False, True]),
        "bytes": torch.arange(3, dtype=torch.uint8),
        'a "name" of é': torch.ones(2),
    }
    path = store.write(state) / "model.safetensors"
    rounded = {name: x.bfloat16() if x.is_floating_point() else x for name, x in state.items()}
    save_file({name: x.clone().contiguous() for name, x in rounded.items()}, tmp_path / "expected")
    found, expected = load_file(path), load_file(tmp_path / "expected")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)
    with safe_open(path, "pt") as opened:
        assert opened.metadata() == {"format": "pt"}


def test_a_format_that_files_cannot_have_is_named(store):
    with pytest.raises(ValueError, match=r"'odd': no file for servers holds numbers of torch\.complex64"):
        store.write({"odd": torch.zeros(2, dtype=torch.complex64)})
