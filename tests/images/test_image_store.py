"""A store holds each picture once, under the name of its content, and never gives another one for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_cases import png

from rlanything.core.images import Image
from rlanything.files import images
from rlanything.files.images import ImageStore
from rlanything.files.reader import FileError
from rlanything.files.records import write_lines

SHADES = [Image(png(shade=k)) for k in range(4)]


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(SHADES)))
def test_every_picture_comes_back_and_lies_there_once(tmp_path_factory, added):
    store = ImageStore(tmp_path_factory.mktemp("store") / "images")
    store.add(added)
    store.add(added)
    assert [store.get(image.sha256) for image in added] == added
    assert len(files(store.folder)) == len(set(added))


def test_a_store_without_pictures_makes_no_folder(tmp_path):
    ImageStore(tmp_path / "images").add([])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_part_of_a_picture(tmp_path, monkeypatch):
    store = ImageStore(tmp_path)

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.add(SHADES[:1])
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file; a record names this picture"),
        (SHADES[1].png, "its content has another sha256 than its name"),
        (SHADES[0].png[:-3], "its content has another sha256 than its name"),
        (bytes((16 << 20) + 1), "holds more than 16 MB"),
    ],
)
def test_a_missing_exchanged_cut_or_large_file_is_an_error_that_names_it(tmp_path, content, words):
    store = ImageStore(tmp_path)
    store.add(SHADES[:1])
    path = store.path(SHADES[0].sha256)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileError, match=words) as raised:
        store.get(SHADES[0].sha256)
    assert str(path) in str(raised.value)


def test_a_file_that_is_its_name_and_no_png_is_refused(tmp_path):
    import hashlib

    data = b"no picture"
    store = ImageStore(tmp_path)
    path = store.path(hashlib.sha256(data).hexdigest())
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(FileError, match="no PNG"):
        store.get(path.stem)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_name_of_a_picture_never_becomes_a_path(tmp_path, name):
    with pytest.raises(ValueError, match="64 hex digits"):
        ImageStore(tmp_path).get(name)


def test_what_passes_stays_until_a_later_call_unless_it_is_kept_meanwhile(tmp_path):
    store, names = ImageStore(tmp_path), [image.sha256 for image in SHADES]
    store.add(SHADES[:3])
    store.discard_added({names[0]}, lambda: None, names[:2])
    assert {path.stem for path in files(tmp_path)} == set(names[:2])
    store.discard_added((), lambda: None, [names[1]])
    assert {path.stem for path in files(tmp_path)} == set(names[:2])
    store.discard_added((), lambda: None)
    assert {path.stem for path in files(tmp_path)} == {names[0]}


def test_what_was_added_in_vain_is_discarded_and_what_was_there_before_stays(tmp_path):
    ImageStore(tmp_path).add(SHADES[:1])
    store = ImageStore(tmp_path)
    store.add(SHADES[:3])
    store.discard_added({SHADES[1].sha256}, lambda: None)
    assert {path.stem for path in files(tmp_path)} == {SHADES[0].sha256, SHADES[1].sha256}


def test_no_process_takes_away_what_another_one_reads_or_sees_next(tmp_path):
    """Two threads stand for two processes: one sees a picture in vain, and the other one sees it an iteration later."""
    first, second, both = ImageStore(tmp_path), ImageStore(tmp_path), threading.Barrier(2, timeout=60)
    seen, name, times = SHADES[:1], SHADES[0].sha256, iter((1, 2))
    waiting, further, removed = threading.Event(), threading.Event(), threading.Event()
    first.add(seen)
    second.add(seen)  # it is there

    def late() -> None:
        """Removes nothing before the other one waits a second time, or has gone on without that."""
        waiting.set()
        both.wait()
        assert further.wait(60)

    def removing() -> None:
        first.discard_added((), late)
        removed.set()

    def meet() -> None:
        if next(times) == 2:
            further.set()
        both.wait()

    def going_on() -> None:
        assert waiting.wait(60)
        assert second.get(name) == SHADES[0]
        second.discard_added((), meet)
        second.add(seen)
        further.set()
        assert removed.wait(60)
        assert second.get(name) == SHADES[0]

    with ThreadPoolExecutor(2) as threads:
        for work in [threads.submit(removing), threads.submit(going_on)]:
            work.result()


def test_clearing_keeps_the_named_pictures_alone(tmp_path):
    store = ImageStore(tmp_path)
    store.add(SHADES)
    (store.path(SHADES[0].sha256).parent / ".left.tmp").write_bytes(b"x")
    images.clear(tmp_path, {SHADES[2].sha256})
    assert [path.stem for path in files(tmp_path)] == [SHADES[2].sha256]


def test_a_list_says_which_pictures_must_be_there_and_how_large(tmp_path):
    store = ImageStore(tmp_path / "images")
    store.add(SHADES[:2])
    write_lines(tmp_path / "list.jsonl.gz", store.listed({image.sha256 for image in SHADES[:2]}))
    found = images.sizes(tmp_path / "list.jsonl.gz")
    assert found == {image.sha256: len(image.png) for image in SHADES[:2]}
    assert store.damage(found) is None
    path = store.path(SHADES[0].sha256)
    path.write_bytes(b"short")
    assert store.damage(found) == f"{path}: it has 5 bytes, not the {len(SHADES[0].png)} that were written"
    path.unlink()
    assert store.damage(found) == f"{path}: it is gone"


@pytest.mark.parametrize("line", [{}, {"sha256": "x", "bytes": 1}, {"sha256": "0" * 64, "bytes": "1"}])
def test_a_list_of_something_else_is_refused_with_its_line(tmp_path, line):
    write_lines(tmp_path / "list.jsonl.gz", [line])
    with pytest.raises(FileError, match=r"list.jsonl.gz:1: no picture"):
        images.sizes(tmp_path / "list.jsonl.gz")
