"""What is the same on an NVIDIA GPU as on the CPU, and what is the same in two runs there: `make test-gpu`.

A GPU is a device like any other in the code, so these tests ask for results and not for code of their own.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
MISSING = "needs an NVIDIA GPU that PyTorch sees; on such a machine: make test-gpu"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip this folder's tests where there is no GPU."""
    if torch.cuda.is_available():
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
