"""One grading at a time writes to a folder: the judgments of all models are in one file, which is written anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import livebench_files
import pytest

from envs.coding.livebench.boxed_grader import Grade
from envs.coding.livebench.exam import LiveBench
from envs.coding.livebench.grading import LOCK, Grading, grade_items
from envs.coding.livebench.install import LiveBenchError
from envs.coding.livebench.judgments import judgment_path, read_judgments
from envs.coding.livebench.selection import LATEST, Item
from rlanything.core.errors import ConfigError
from rlanything.core.exams import GradingOrder
from rlanything.files import locks

HERE = Path(__file__).parent
MODELS = 12


class Quick:
    """A grader that needs no sandbox: these tests are about the files."""

    name = "quick"
    made: dict[str, str] = {}  # noqa: RUF012 - a constant of the protocol

    def grades(self, items: Sequence[Item]) -> Iterator[Grade]:
        yield from (Grade(score=1) for _ in items)


def grade(data: Path, model: str) -> Grading:
    files = {**livebench_files.made_files(data.parent / model), "data": data}
    return grade_items(livebench_files.items_of(files), model, data, [Quick()], lambda *_: None)


def grade_many(data: Path, name: str) -> None:
    """Grade model after model, waiting while another process grades."""
    for number in range(MODELS):
        done = False
        while not done:
            try:
                done = bool(grade(data, f"{name}-{number}").rows)
            except ConfigError as error:
                assert "another `rlanything livebench grade` writes there" in str(error)  # noqa: PT017


def test_gradings_at_the_same_time_lose_no_row(tmp_path):
    data = tmp_path / "data"
    code = "import sys; from pathlib import Path; from test_coding_livebench_lock import grade_many\n"
    code += "grade_many(Path(sys.argv[1]), sys.argv[2])"
    paths = {"PYTHONPATH": f"{HERE}:{HERE.parent}:{HERE.parents[3]}"}
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(data), name], env=paths) for name in ("a", "b", "c")
    ]
    assert [process.wait(200) for process in running] == [0, 0, 0]
    models = {model for _, model in read_judgments(judgment_path(data, "LCB_generation"))}
    assert models == {f"{name}-{number}" for name in "abc" for number in range(MODELS)}


def test_a_second_grading_is_refused_with_its_holder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with (
        locks.held(data / LOCK, "the first"),
        pytest.raises(ConfigError, match=r"data: another .* writes there \(pid \d+"),
    ):
        grade(data, "m")
    assert grade(data, "m").rows


@pytest.mark.parametrize("model", ["", ".", "..", "a/b", "/tmp/x", "../x", "x" * 101, "a\n", "-x"])
def test_a_name_that_is_a_path_is_refused_before_anything_is_read(tmp_path, model):
    nothing = tmp_path / "nothing"
    order = GradingOrder([nothing], [nothing], model, LATEST, nothing, nothing, "ours", 1, False, {})
    with pytest.raises(LiveBenchError, match=r"--model .*: it names a file"):
        LiveBench().grade(order)
    with pytest.raises(LiveBenchError, match=r"--model .*: it names a file"):
        LiveBench().answers(nothing, model, {})
    assert not nothing.exists()
