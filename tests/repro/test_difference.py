"""The first difference between two runs: in the order things happened, down to the token, the tensor or the byte."""

from __future__ import annotations

import gzip
import json
import shutil
import tracemalloc
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from rlanything.buffer import TaskBuffer, write_snapshot
from rlanything.cli import main
from rlanything.core.types import Task
from rlanything.files import reader
from rlanything.repro import file_difference
from rlanything.repro.difference import first_difference, folders
from rlanything.repro.file_difference import first_place


@pytest.fixture
def pair(undisturbed, tmp_path) -> tuple[Path, Path]:
    """A finished run and a copy of it that may be changed."""
    shutil.copytree(undisturbed, tmp_path / "copy")
    return undisturbed, tmp_path / "copy"


def found(pair):
    return first_difference(*folders(*pair))


def edit_lines(path: Path, number: int, change) -> None:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in raw.splitlines()]
    change(records[number])
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def other_token(record):
    record["trajectory"]["steps"][1]["response"][0] += 1
    record["lesson"]["policy"] = [9.0]


@pytest.mark.integration
def test_a_run_does_not_differ_from_its_copy(pair, capsys):
    assert found(pair) is None
    assert main(["first-difference", *map(str, pair)]) == 0
    assert "files, byte for byte" in capsys.readouterr().out


def test_workspaces_differ_where_the_tasks_behind_their_links_do(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"of-{name}").mkdir()
        (tmp_path / f"of-{name}" / "panel.jsonl").write_text(f'"{name}"')
        (tmp_path / name).mkdir()
        (tmp_path / name / "params.yaml").touch()
        (tmp_path / name / "data").symlink_to(tmp_path / f"of-{name}")
    difference = found((tmp_path / "first", tmp_path / "second"))
    assert difference.path == PurePosixPath("data/panel.jsonl")


@pytest.mark.integration
def test_another_token_is_named_and_not_what_followed_from_it(pair, capsys):
    _, copy = pair
    edit_lines(copy / "rollouts" / "iter_0002.jsonl.gz", 3, other_token)
    edit_lines(copy / "metrics.jsonl", 1, lambda row: row.update(accuracy=9))
    weights = copy / "checkpoints" / "policy" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\7")
    difference = found(pair)
    assert difference.path == PurePosixPath("rollouts/iter_0002.jsonl.gz")
    assert difference.place.iteration == 1
    assert difference.place.where.startswith("slot ")
    assert difference.place.where.endswith("rollout 3, step 1, token 0")
    assert main(["first-difference", *map(str, pair)]) == 1
    assert "iteration 1, slot" in capsys.readouterr().out


@pytest.mark.integration
def test_what_happened_earlier_is_named_first_whatever_its_file_is_called(pair):
    _, copy = pair
    edit_lines(copy / "rollouts" / "iter_0002.jsonl.gz", 0, other_token)
    edit_lines(copy / "metrics.jsonl", 0, lambda row: row.update(accuracy=9))
    assert str(found(pair)).startswith("metrics.jsonl: iteration 0, line 1, accuracy")


@pytest.mark.integration
def test_a_vote_is_named_by_step_vote_and_token(pair):
    _, copy = pair

    def change(record):
        record["judgements"][1]["votes"][2]["response"][0] += 1

    edit_lines(copy / "rollouts" / "iter_0001.jsonl.gz", 0, change)
    assert found(pair).place.where.endswith("judged step 1, vote 2, token 0")


@pytest.mark.integration
def test_a_missing_file_is_a_difference(pair):
    _, copy = pair
    (copy / "dvclive" / "metrics.json").unlink()
    assert str(found(pair)) == "dvclive/metrics.json: file\n  first:  there\n  second: missing"


def packed(count: int, seed: int) -> bytes:
    """Lines of a hundred bytes, in an archive, and an episode with this seed."""
    rows = [{"iteration": n, "text": "x" * 80} for n in range(count)]
    rows.append({"trajectory": {"slot": 3, "rollout": 1, "seed": seed}})
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), 1)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("lines.jsonl.gz", "line 20001, trajectory.seed"),
        ("rollouts/iter_0003.jsonl.gz", "slot 3, rollout 1, seed"),
    ],
)
def test_equal_lines_are_neither_read_as_json_nor_kept(monkeypatch, name, where):
    monkeypatch.setattr(reader, "MOST_MB", 1)  # what is not kept may be more than a file that is read
    asked = []
    monkeypatch.setattr(file_difference, "parse", lambda line: asked.append(line) or json.loads(line))
    contents = [packed(20_000, seed) for seed in (4, 5)]
    tracemalloc.start()
    place = first_place(PurePosixPath(name), *contents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (place.where, place.first, place.second) == (where, "4", "5")
    assert len(asked) == 2
    assert peak < 4 << 20


def test_lines_that_say_the_same_in_other_words_are_passed_over():
    first, second = b'{"a": 1, "b": 2}\n{"c": 1}\n', b'{"b": 2, "a": 1}\n{"c": 2}\n'
    assert str(first_place(PurePosixPath("x.jsonl"), first, second).where) == "line 2, c"
    longer = first_place(PurePosixPath("x.jsonl"), first, first + b'{"d": 1}')
    assert (longer.where, longer.first, longer.second) == ("line 3", "nothing", '{"d": 1}')


def test_a_line_that_is_too_long_to_be_held_is_compared_byte_by_byte(monkeypatch):
    monkeypatch.setattr(file_difference, "_LONGEST", 20)
    first, second = b'{"a": "one two three"}\n1', b'{"a": "one two three"}\n2'
    assert first_place(PurePosixPath("x.jsonl"), first, second).where == "byte 23"


def test_a_tensor_is_named_with_its_element_and_both_values():
    weights = {"a": np.zeros((2, 3), np.float32), "b": np.ones(5, np.float32)}
    before = save(weights)
    weights["b"][3] = 1.5
    place = first_place(PurePosixPath("model.safetensors"), before, save(weights))
    assert place.where == "tensor b, element 3"
    assert place.first.startswith("1.0 ")
    assert place.second.startswith("1.5 ")


def test_a_file_that_is_not_what_its_name_says_is_compared_byte_by_byte():
    place = first_place(PurePosixPath("metrics.jsonl"), b"\xff\xfe1", b"\xff\xfe2")
    assert place.where == "byte 2"


@pytest.mark.parametrize("name", ["evaluation/full.json", "runs/full/seed-0/metrics.jsonl"])
def test_a_value_that_is_no_number_on_both_sides_is_no_difference(name):
    first, second = (f'{{"a": NaN, "b": {{"c": [NaN, {last}]}}}}'.encode() for last in (1, 2))
    place = first_place(PurePosixPath(name), first, second)
    assert (place.where.removeprefix("line 1, "), place.first, place.second) == ("b.c.1", "1", "2")
    place = first_place(PurePosixPath(name), first, first.replace(b"NaN", b"0", 1))
    assert (place.where.removeprefix("line 1, "), place.first, place.second) == ("a", "NaN", "0")


@pytest.mark.parametrize("project", [False, True])
def test_two_folders_without_results_are_not_called_equal(tmp_path, capsys, project):
    for name in ("first", "second"):
        (tmp_path / name / ".rla").mkdir(parents=True)
        if project:
            (tmp_path / name / "params.yaml").touch()
    (tmp_path / "first" / ".rla" / "hidden").touch()
    assert main(["first-difference", str(tmp_path / "first"), str(tmp_path / "second")]) == 2
    assert "neither has results to compare" in capsys.readouterr().err


def test_folders_are_named_as_in_other_commands(tmp_path, monkeypatch, capsys):
    root, here = tmp_path / "project", tmp_path / "here"
    for place in (root / "runs/full/seed-0", root / "runs/policy/seed-0", here / "copy"):
        write_snapshot(TaskBuffer.start([Task("toy", "do it", {}, {})]), place / "buffer" / "iter_0000.jsonl")
    (root / "params.yaml").touch()
    monkeypatch.chdir(here)
    for second in ("policy/seed-0", "runs/policy/seed-0", "copy"):
        assert main(["--root", str(root), "first-difference", "full/seed-0", second]) == 0
    capsys.readouterr()
    assert main(["--root", str(root), "first-difference", "full/seed-0", "full/sed-0"]) == 2
    said = capsys.readouterr().err
    assert f"full/sed-0: no such folder, neither in {root} nor in the current one; " in said
    assert "as the name of a run it is unknown; did you mean 'full/seed-0'?" in said


def test_equal_values_in_other_words_differ_by_their_bytes():
    place = first_place(PurePosixPath("a.json"), b'{"a": 1}', b'{"a":1}')
    assert place.where == "byte 5"


@given(st.binary(min_size=1, max_size=200), st.data())
def test_the_first_differing_byte_is_found(data, draw):
    at = draw.draw(st.integers(0, len(data) - 1))
    later = draw.draw(st.binary(max_size=20))
    other = data[:at] + bytes([data[at] ^ 1]) + later
    assert first_place(PurePosixPath("x.bin"), data, other).where == f"byte {at}"


def deeper(value):
    return st.lists(value, max_size=3) | st.dictionaries(st.text(max_size=2), value, max_size=3)


values = st.recursive(st.none() | st.integers() | st.text(max_size=3), deeper, max_leaves=8)


@given(values, values)
def test_any_two_unequal_records_have_a_first_difference(a, b):
    first, second = (json.dumps({"x": v}, sort_keys=True).encode() for v in (a, b))
    if first != second:
        place = first_place(PurePosixPath("a.json"), first, second)
        assert place.where.startswith("x")
        assert place.first != place.second or len(place.first) == 80
