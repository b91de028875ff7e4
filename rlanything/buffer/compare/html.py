"""`diff A B` and `diff BASE A B` as a page: it can be filtered and sorted, and task text stays text in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlanything.buffer.compare import frame
from rlanything.buffer.compare.fieldtext import field_line, field_lines
from rlanything.buffer.compare.frame import markup, plain_cell, share_cell, task_cell
from rlanything.buffer.compare.page import SCHEMA
from rlanything.buffer.compare.text import counts_line, inside_line, title
from rlanything.buffer.compare.threeway import agreement_line, shared_line, verdicts_line
from rlanything.buffer.compare.words import Part, word_diff

_LISTED = 12
"""Values that the concentration shows."""
_TWO = (("slot", "n"), ("versions", ""), ("change", ""), ("old", "n"), ("new", "n"), ("task", ""))
_THREE = (
    *(("slot", "n"), ("verdict", "")),
    *((name, cls) for side in "AB" for name, cls in ((side, ""), (f"{side} acc", "n"), (f"{side} task", ""))),
)


def diff_html(page: Mapping[str, Any]) -> str:
    """The page of a comparison of two."""
    rows = [_row(row) for row in page["slots"] or []]
    counts = f"<p>{markup(counts_line(page['counts']))}</p>\n"
    lead = f"{counts}{_difficulty(page['difficulty'])}{_concentration(page['concentration'])}"
    return frame.document(title(page), lead, _TWO, rows, f"rlanything buffer diff, schema {SCHEMA}")


def three_html(page: Mapping[str, Any]) -> str:
    """The page of a comparison of three: every slot that A or B changed, word by word against the base."""
    told = [
        f"A is {page['a']}, B is {page['b']}",
        verdicts_line(page["counts"]),
        agreement_line(page["agreement"]),
    ]
    lead = "".join(f"<p>{markup(line)}</p>\n" for line in told)
    name = f"{page['base']} -> A {page['a']}, B {page['b']}"
    rows = [_three_row(row) for row in page["slots"]]
    return frame.document(name, lead, _THREE, rows, f"rlanything buffer diff3, schema {page['schema']}")


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    change = ", ".join(row["directions"]) or row["status"]
    cells = [
        plain_cell(str(row["slot"]), row["slot"]),
        plain_cell(row["path"]),
        plain_cell(change),
        *(share_cell(row["accuracy"][side]) for side in ("old", "new")),
        task_cell(row["instruction"], row["fields"], row["reason"]),
    ]
    kinds = [row["status"], *(["rejected"] if row["refused"] else [])]
    words = ["".join(part for _, part in row["instruction"]), change, *_words(row["fields"]), row["reason"]]
    return frame.row(row["slot"], kinds, cells, words)


def _three_row(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = [plain_cell(str(row["slot"]), row["slot"]), plain_cell(_verdict(row), row["verdict"])]
    words = [row["verdict"], row["base"] or ""]
    for side in (row["a"], row["b"]):
        cells += [plain_cell(f"{side['status']} {side['path']}"), share_cell(side["accuracy"])]
        cells.append(task_cell(_against(row["base"], side["instruction"]), side["fields"]))
        words += [side["status"], side["instruction"] or "", *_words(side["fields"])]
    ways = [f"{name} {row[side]['status']}" for name, side in (("A", "a"), ("B", "b"))]
    return frame.row(row["slot"], [row["verdict"], *ways], cells, words)


def _verdict(row: Mapping[str, Any]) -> str:
    shared = shared_line(row["shared"])
    return f"{row['verdict']}; {shared}" if shared else row["verdict"]


def _words(fields: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What fields can be found by."""
    for field in fields:
        yield field_line(field)
        yield from (line.text for line in field_lines(field))


def _against(base: str | None, new: str | None) -> list[Part]:
    return word_diff(base or "", new or "")


def _difficulty(told: Mapping[str, Any]) -> str:
    most = max([1, *told["old"], *told["new"]])
    rows = []
    for k in range(len(told["old"])):
        if not (told["old"][k] or told["new"][k]):
            continue
        label = f"{told['edges'][k]:.1f} to {told['edges'][k + 1]:.1f}"
        bars = "".join(_bar(side, told[side][k], most) for side in ("old", "new"))
        rows.append(f'<tr><td class="n">{label}</td><td>{bars}</td></tr>\n')
    missing = f"not measured: {told['unmeasured']['old']} → {told['unmeasured']['new']}"
    return (
        f"<h2>Difficulty</h2>\n<p>Inside the band {markup(inside_line(told['inside']))}; {missing}</p>\n"
        f"<table><tbody>{''.join(rows)}</tbody></table>\n"
    )


def _bar(side: str, count: int, most: int) -> str:
    width = 30 * count / most
    return f'<div><span class="bar {side}" style="width:{width:.2f}rem"></span>{count} {side}</div>'


def _concentration(rows: list[Mapping[str, Any]]) -> str:
    cells = "".join(
        f"<tr><td>{markup(row['field'])}</td><td>{markup(row['value'])}</td>"
        f'<td class="n">{row["changed"]} of {row["tasks"]}</td><td class="n">{row["ratio"]:.2f}</td>'
        f'<td class="n">{row["p"]:.2g}</td></tr>\n'
        for row in [row for row in rows if row["ratio"] > 1][:_LISTED]
    )
    numbers = "".join(f'<th class="n">{name}</th>' for name in ("changed", "ratio", "p"))
    heads = f"<tr><th>field</th><th>value</th>{numbers}</tr>"
    table = f"<table><thead>{heads}</thead><tbody>{cells}</tbody></table>\n" if cells else "<p>nowhere</p>\n"
    return f"<h2>Where the change concentrates</h2>\n{table}"
