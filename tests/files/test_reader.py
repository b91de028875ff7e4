"""Files of strangers: what is no file, too large, too deep or broken is an error that names file and line."""

from __future__ import annotations

import gzip
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rlanything.core.errors import ConfigError
from rlanything.files import reader
from rlanything.files.reader import (
    FileError,
    TooLargeError,
    parse,
    read_bytes,
    read_json,
    read_object,
    read_objects,
    read_text,
)
from rlanything.files.records import read_lines, read_panel, write_lines
from rlanything.files.yaml_file import read_mapping


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(str(path))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (pipe, "no regular file"),
        (unix_socket, "no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (Path.mkdir, "a directory"),
        (lambda path: None, "No such file"),
    ],
)
@pytest.mark.parametrize(
    "read", [read_bytes, read_text, read_json, read_object, lambda p: list(read_objects(p)), read_mapping]
)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, make, words, read):
    path = tmp_path / "x.json"
    make(path)
    with pytest.raises(FileError, match=words) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_a_link_to_a_file_is_that_file(tmp_path):
    (tmp_path / "there").write_text('{"a": 1}')
    (tmp_path / "x.json").symlink_to("there")
    assert read_object(tmp_path / "x.json") == {"a": 1}


def test_a_size_above_the_limit_is_refused_and_the_message_says_how_to_raise_it(tmp_path, monkeypatch):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * (3 << 20) + b'"}\n')
    monkeypatch.setattr(reader, "MOST_MB", 2)
    with pytest.raises(FileError, match="more than 2 MB; RLANYTHING_MOST_MB"):
        read_text(path, 2)
    monkeypatch.setenv(reader.SIZE, "4")
    assert len(read_text(path, 2)) == path.stat().st_size
    monkeypatch.setenv(reader.SIZE, "many")
    with pytest.raises(ConfigError, match="RLANYTHING_MOST_MB = 'many'"):
        read_text(path)


BOMB = """
import sys
from pathlib import Path
from rlanything.core.errors import ConfigError
from rlanything.files import reader
for read in (lambda path: reader.read_bytes(path, 8), lambda path: list(reader.read_objects(path, 8))):
    try:
        read(Path(sys.argv[1]))
    except ConfigError as error:
        print(error)
"""


@pytest.mark.parametrize("line", [b" " * (1 << 20), b'{"a": "' + b"x" * 1000 + b'"}\n'], ids=["one", "many"])
def test_an_archive_is_unpacked_as_far_as_the_limit_and_no_further(tmp_path, line):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(line * ((100 << 20) // len(line)), 1))
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)],
        capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (180 << 20, 180 << 20)),
    )  # fmt: skip
    assert [line.partition(";")[0] for line in done.stdout.splitlines()] == [
        f"{path}: it holds more than 8 MB"
    ] * 2


def test_a_reward_panel_may_be_larger_and_to_make_it_again_is_no_advice_where_it_is_too_large(tmp_path):
    path = tmp_path / "panel.jsonl.gz"
    write_lines(path, ({"text": "x" * (1 << 20)} for _ in range(3)))
    assert len(list(read_lines(path, "rlanything bootstrap", 4))) == len(read_panel(path, "")) == 3
    with pytest.raises(
        TooLargeError, match="more than 2 MB; RLANYTHING_MOST_MB in the environment raises"
    ) as caught:
        list(read_lines(path, "rlanything bootstrap", 2))
    assert "make it again" not in str(caught.value)
    assert reader.PANEL_MB > reader.MOST_MB
    path.write_bytes(gzip.compress(b"{"))
    with pytest.raises(ConfigError, match="make it again with `rlanything bootstrap`"):
        read_panel(path, "rlanything bootstrap")


def test_to_make_a_file_again_is_advice_for_what_is_damaged_alone(tmp_path, monkeypatch):
    path = tmp_path / "large.json"
    path.write_text(json.dumps({"text": "x" * (2 << 20)}))
    monkeypatch.setattr(reader.read_bytes, "__defaults__", (1,))  # megabytes
    with pytest.raises(TooLargeError, match=r"raises the limit$"):
        read_object(path, "make it again")
    path.write_text("{")
    with pytest.raises(FileError, match=r"not JSON.*; make it again$"):
        read_object(path, "make it again")


@pytest.mark.parametrize("depth", [201, 990, 100_000])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_json_that_is_too_deep_is_refused_with_its_line(tmp_path, depth, pair):
    opening = '{"[": ' if pair == "{}" else "["
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": "[[[["}\n' + opening * depth + "1" + pair[1] * depth + "\n")
    with pytest.raises(FileError, match=r"x\.jsonl:2: .*nested (too deeply|deeper than 200 levels)"):
        list(read_objects(path))


def test_depth_is_counted_outside_of_texts_only_and_can_be_raised(monkeypatch):
    text = json.dumps(["[" * 500, '\\"[[' * 300, {"{" * 300: [[]] * 300}])
    assert parse(text.encode()) == json.loads(text)
    deep = b"[" * 201 + b"]" * 201
    with pytest.raises(FileError, match="deeper than 200 levels; RLANYTHING_MOST_DEPTH"):
        parse(deep)
    monkeypatch.setenv(reader.DEPTH, "300")
    assert json.dumps(parse(deep)).encode() == deep


def test_a_value_of_very_many_lists_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_PER_MB", 4)
    assert len(parse(b"[" + b"[]," * 1000 + b"[]]")) == 1001
    (tmp_path / "x.jsonl").write_bytes(b"[]\n" * 2000)
    with pytest.raises(FileError, match="more than 1,024 lists and objects"):
        parse(b"[" + b"[]," * 2000 + b"[]]")
    with pytest.raises(FileError, match=r"x\.jsonl:1: expected a JSON object"):
        list(read_objects(tmp_path / "x.jsonl"))
    (tmp_path / "x.jsonl").write_bytes(b"{}\n" * 2000)
    with pytest.raises(FileError, match=r"x\.jsonl:1025: more than 1,024 lists"):
        list(read_objects(tmp_path / "x.jsonl"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n{"a": \xff}\n', ":2: not JSON (byte 6 is not UTF-8)"),
        (b'{"a": 1}\n{"a"', ":2: not JSON ("),
        (b'{"a": 1}\n\n', ":2: not JSON ("),
        (b'{"a": ' + b"1" * 5000 + b"}\n", ":1: not JSON that can be read (Exceeds the limit"),
        ('{"a": 1}\n'.encode("utf-16"), ":1: not JSON (byte 0 is not UTF-8)"),
        (b"3\n", ":1: expected a JSON object, found int"),
    ],
)
def test_a_broken_line_is_named(tmp_path, content, words):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError) as raised:
        list(read_objects(path))
    assert str(raised.value).startswith(f"{path}{words}")


def test_every_flipped_byte_of_an_archive_is_an_error_or_other_data(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"a": %d}\n' % k for k in range(30)), mtime=0)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            found = list(read_objects(path))
        except FileError as error:
            found = []
            said = str(error)
        else:
            said = f"{path}"
        assert str(path) in said
        assert len(found) in (0, 30)


LAUGHS = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("seed: 1\n".encode("utf-16"), "cannot be read (byte 0 is not UTF-8)"),
        (LAUGHS.encode(), "aliases are not read"),
        (b"seed: 1\nscale: x\nseed: 2\n", "'seed' stands there twice"),
        (b"a: {b: 1, b: 1}\n", "'b' stands there twice"),
        (b"[" * 5000, "nested deeper than 32 levels"),
        (b"seed: " + b"1" * 5000, "not valid YAML"),
        (b"day: 2026-99-99\n", "not valid YAML"),
        (b"a: !!python/object/apply:os.system [x]\n", "tags are not read ('tag:yaml.org,2002:python/obj"),
        (b"seed: !!bool maybe\n", "tags are not read ('tag:yaml.org,2002:bool')"),
        (b"seed: !!int ''\n", "tags are not read"),
        (b"a: !mine {b: 1}\n", "tags are not read ('!mine')"),
        (b"? [a]\n: 1\n", "not valid YAML"),
        (b"a: \x00\n", "not valid YAML"),
    ],
)
def test_yaml_is_one_plain_mapping(tmp_path, content, words):
    path = tmp_path / "params.yaml"
    path.write_bytes(content)
    with pytest.raises(FileError) as raised:
        read_mapping(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert words in str(raised.value)


def test_a_long_number_of_base_60_is_read_at_once_as_text(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(f"a: {'1:' * 200_000}1\n")
    assert read_mapping(path) == {"a": "1:" * 200_000 + "1"}


def test_times_and_addresses_in_yaml_are_text(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(
        "at: '12:30'\nto: 12:30\nhalf: 1:30.5\nbase_url: http://localhost:8000/v1\nhost: localhost:80\n"
    )
    assert read_mapping(path) == {
        "at": "12:30",
        "to": "12:30",
        "half": "1:30.5",
        "base_url": "http://localhost:8000/v1",
        "host": "localhost:80",
    }
