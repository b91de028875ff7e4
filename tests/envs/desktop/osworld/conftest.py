"""A folder of OSWorld's tasks, and the family of them over the stand-in."""

import pytest
from desktop_cases import data, family


@pytest.fixture
def files(tmp_path):
    return data(tmp_path)


@pytest.fixture
def made(files):
    found = family(files)
    yield found
    found._pool.close()
