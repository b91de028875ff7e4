"""The pictures of a run are published with the iteration that names them, and are in the finished run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from image_cases import png
from stage_cases import buffer, write_iteration

from rlanything.core.errors import MachineError
from rlanything.core.images import Image
from rlanything.files import images
from rlanything.files.images import ImageStore
from rlanything.files.records import write_lines
from rlanything.runs.folder import RunFolder

SHADES = [Image(png(shade=k)) for k in range(4)]
NAMES = [image.sha256 for image in SHADES]


def publish(folder: RunFolder, iteration: int, shown: list[Image]) -> None:
    """An iteration whose rollouts name these pictures. Another picture is seen by nobody but a panel."""
    store = ImageStore(folder.images.folder)
    store.add([*shown, SHADES[3]])

    def write(path: Path) -> None:
        write_iteration(path, iteration)
        write_lines(path / "images.jsonl.gz", store.listed({image.sha256 for image in shown}))

    folder.publish(iteration, write)
    store.discard_added({image.sha256 for image in shown}, lambda: None)


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """Two iterations, which share a picture."""
    made = RunFolder(tmp_path / "run")
    assert made.recover(print) == 0
    publish(made, 0, SHADES[:2])
    publish(made, 1, SHADES[1:3])
    return made


def stored(folder: Path) -> set[str]:
    return {path.stem for path in folder.rglob("*.png")}


def test_a_picture_of_two_iterations_lies_there_once_and_one_of_none_is_gone(folder):
    assert stored(folder.images.folder) == set(NAMES[:3])


def test_the_finished_run_has_every_picture_beside_the_rollouts(folder):
    folder.export(buffer(), lambda _: None)
    assert stored(folder.finished / "images") == set(NAMES[:3])
    assert images.sizes(folder.finished / "images" / "iter_0002.jsonl.gz") == {
        image.sha256: len(image.png) for image in SHADES[1:3]
    }
    folder.check_finished()


def test_a_run_without_pictures_has_no_folder_for_them(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.recover(print)
    made.publish(0, lambda path: write_iteration(path, 0))
    made.export(buffer(), lambda _: None)
    assert not list(made.path.rglob("images*"))


def test_what_a_killed_iteration_left_is_removed_and_what_is_published_stays(folder):
    code = (
        "import os, signal, sys; from pathlib import Path; from image_cases import png\n"
        "from rlanything.core.images import Image; from rlanything.files.images import ImageStore\n"
        "ImageStore(Path(sys.argv[1])).add([Image(png(shade=3))]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    here = str(Path(__file__).parent)
    path = f"import sys; sys.path.insert(0, {here!r})\n"
    subprocess.run([sys.executable, "-c", path + code, str(folder.images.folder)], check=False)
    assert stored(folder.images.folder) == set(NAMES)
    assert folder.recover(pytest.fail) == 2
    assert stored(folder.images.folder) == set(NAMES[:3])


def test_a_last_iteration_that_lost_a_picture_is_computed_again(folder):
    folder.images.path(NAMES[2]).unlink()
    said: list[str] = []
    assert folder.recover(said.append) == 1
    assert f"{NAMES[2]}.png: it is gone; 0001 is computed again" in said[0]
    publish(folder, 1, SHADES[1:3])
    assert folder.recover(pytest.fail) == 2


def test_what_was_sampled_ahead_is_needed_as_long_as_its_checkpoint_and_is_not_exported(tmp_path):
    """Iteration k holds picture k of the next batch; no rollouts are stored."""
    made = RunFolder(tmp_path / "run")
    made.recover(print)
    made.images.add(SHADES)

    def ahead(k: int) -> None:
        def write(path: Path) -> None:
            write_iteration(path, k)
            write_lines(path / "images_ahead.jsonl", made.images.listed([NAMES[k]]))

        made.publish(k, write)

    for k in range(3):
        ahead(k)
    assert made.recover(pytest.fail) == 3
    assert stored(made.images.folder) == set(NAMES[1:3])
    made.images.path(NAMES[2]).unlink()
    said: list[str] = []
    assert made.recover(said.append) == 2
    assert f"{NAMES[2]}.png: it is gone; 0002 is computed again" in said[0]
    assert stored(made.images.folder) == {NAMES[1]}, "what iteration 1 goes on with"
    made.export(buffer(), lambda _: None)
    assert not list(made.finished.rglob("*images*"))
    assert not stored(made.finished)


def test_an_older_iteration_that_lost_a_picture_stops_the_run(folder):
    folder.images.path(NAMES[0]).write_bytes(b"x")
    with pytest.raises(MachineError, match=f"{NAMES[0]}.png: it has 1 bytes, not the .* cannot be resumed"):
        folder.recover(print)


def test_a_picture_that_was_exchanged_is_not_exported(folder):
    path = folder.images.path(NAMES[0])
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(MachineError, match=r"another sha256 than its name\. Put the picture back"):
        folder.export(buffer(), lambda _: None)
    assert not folder.finished.exists()
