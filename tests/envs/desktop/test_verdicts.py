"""Checks of a desktop: what holds, and files of an agent that are damaged, huge or none."""

from __future__ import annotations

import gzip
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envs.desktop.small.inside import verdicts
from envs.desktop.small.templates import SHEET, templates

OF = "http://www.gnumeric.org/v10.dtd"
BOMB = gzip.compress(bytes(256 * 2**20), 6)


def sheet(*cells: tuple[str, str], more: str = "") -> str:
    inside = "".join(f'<g:Cell Row="{place[1:]}" Col="{place[0]}">{text}</g:Cell>' for place, text in cells)
    first = f"<g:Sheet><g:Cells>{inside}</g:Cells></g:Sheet>"
    return f'<g:Workbook xmlns:g="{OF}"><g:Sheets>{first}{more}</g:Sheets></g:Workbook>'


def holds(home, check, shown=()):
    assert verdicts.flaw(check) == ""
    return verdicts.holds(check, home, lambda: iter(shown))


def test_a_cell_is_what_was_entered_in_the_first_sheet(tmp_path):
    other = '<g:Sheet><g:Cells><g:Cell Row="2" Col="1">9</g:Cell><g:Cell Row="8" Col="1">8</g:Cell></g:Cells></g:Sheet>'
    content = sheet(("12", "7"), ("03", " =A1+B1 "), more=other).encode()
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content))
    for of in ("plain", "packed"):
        for cell, value in [("B3", "7"), ("A4", "=A1+B1"), ("B9", ""), ("Z1", "")]:
            assert holds(tmp_path, {"cell": cell, "of": of, "value": value})
        assert not holds(tmp_path, {"cell": "B3", "of": of, "value": "9"})
        assert not holds(tmp_path, {"cell": "B9", "of": of, "value": "8"})


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no xml", b"<a>", b"\x1f\x8b", gzip.compress(sheet().encode())[:-20], b"\x1f\x8b\x08garbage",
        gzip.compress(b"<a"), BOMB, b" " * (8 * 2**20) + sheet().encode(), sheet().encode("utf-16")[:-1],
        b'<!DOCTYPE a [<!ENTITY e "' + b"x" * 99 + b'">]>' + sheet(("00", "&e;")).encode(), b"<a>\xff\xfe\x00</a>",
        b'<?xml version="1.0" encoding="none"?>' + sheet().encode(), b'<?xml version="1.0" encoding="rot13"?><a/>',
    ],
    ids=range(14),
)  # fmt: skip
def test_a_spreadsheet_that_cannot_be_read_does_not_hold(tmp_path, content):
    (tmp_path / SHEET).write_bytes(content)
    tracemalloc.start()
    assert not holds(tmp_path, {"cell": "Z9", "of": SHEET, "value": ""})
    assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("piece", ["\n", "<b/>1", "<!---->1"])
def test_a_cell_of_many_pieces_is_read_in_linear_time(tmp_path, piece):
    text = piece * (6 * 2**20 // len(piece))
    (tmp_path / SHEET).write_bytes(gzip.compress(sheet(("00", text)).encode()))
    started = time.process_time()
    assert not holds(tmp_path, {"cell": "A1", "of": SHEET, "value": "7"})
    assert time.process_time() - started < 20


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary() | st.binary().map(gzip.compress))
def test_whatever_a_file_has_is_a_verdict(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert holds(tmp_path, {"cell": "A1", "of": "a", "value": "x"}) is False
    assert holds(tmp_path, {"file": "a"})


def test_a_file_that_is_missing_or_none_does_not_hold(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("x")
    long = "a" * 300
    for name in ("missing", "loop", "folder", "text/x", long):
        assert not holds(tmp_path, {"cell": "A1", "of": name, "value": ""})
        assert not holds(tmp_path, {"file": name})
    for name in ("missing", "loop", "text", long):
        assert not holds(tmp_path, {"folder": name, "holds": []})


def test_texts_folders_and_items(tmp_path):
    (tmp_path / "a.txt").write_text("one two\n\n")
    assert holds(tmp_path, {"file": "a.txt", "equals": "one two", "contains": ["one", "two"]})
    assert not holds(tmp_path, {"file": "a.txt", "contains": ["one", "three"]})
    assert not holds(tmp_path, {"file": "a.txt", "equals": "one"})
    assert holds(tmp_path, {"folder": ".", "holds": ["a.txt"]})
    assert not holds(tmp_path, {"folder": ".", "holds": []})
    assert holds(tmp_path, {"absent": "b.txt"})
    shown = [("label", "Sum", "", False), ("text", "", " 42 ", True)]
    assert holds(tmp_path, {"shown": "42", "role": "text"}, shown)
    assert holds(tmp_path, {"shown": "Sum"}, shown)
    assert not holds(tmp_path, {"shown": "42", "role": "label"}, shown)
    assert not holds(tmp_path, {"shown": "4"}, shown)


def test_every_check_of_every_task_is_one():
    for one in templates().values():
        for row in range(len(one.rows)):
            for key in one.instructions(row):
                checks = one.task_file(row, key)["checks"]
                assert checks
                assert not any(map(verdicts.flaw, checks))
