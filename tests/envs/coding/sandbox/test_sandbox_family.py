"""The family on every back end: the settings reach it, and the tables are the same."""

import pytest
from sandbox_cases import BACKENDS, opened

from envs.coding.family import CodingFamily

REPLIES = ["test: 1 2 3 -> 6", "nothing"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_examination_on_every_back_end(request, backend):
    opened(request, backend).close()
    image = request.getfixturevalue("image") if backend == "docker" else None
    family = CodingFamily(backend=backend, image=image, trusted=backend == "subprocess", workers=1)
    task = family.make("train", 1, 0)[0]
    programs = [task.payload["solution"], "print(", "1 / 0"]
    try:
        (found,) = family.examine([(task, programs, [family.demonstrate_test(task, 0, 0.0), *REPLIES])])
    finally:
        family.close()
    own = len(task.payload["cases"])
    assert found.dataset == ((True,) * own, (False,) * own, (False,) * own)
    assert [row[0] for row in found.generated] == [True, False, False]
    assert [row[2] for row in found.generated] == [False, False, False]
