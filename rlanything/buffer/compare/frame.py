"""The frame of a comparison's page: one file that needs nothing else, with a table of slots to filter and sort.

The slots lie in the page as data. The page's script builds the table from text nodes alone, so task text stays text; a
content policy lets the browser run that one script, known by its hash, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rlanything.buffer.compare.fieldtext import field_line, field_lines
from rlanything.buffer.compare.words import Part
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.render import safe, share

Cell = dict[str, Any]
"""What a cell shows, and `sort`, the value that it is sorted by; null comes last."""
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;
border-bottom:1px solid #ddd;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid #06c}
ins{background:#d9f2dd;text-decoration:none}del{background:#fbdcdc}.quiet{color:#666}.old{background:#d77}.new{background:#5a9}
.bar{display:inline-block;height:.8rem;vertical-align:middle;margin-right:.4rem}
.statement{white-space:pre-wrap}.line{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;padding-left:1rem}
summary{cursor:pointer}
#controls{display:flex;gap:1rem;flex-wrap:wrap;margin:.5rem 0}input,select{font:inherit;padding:.2rem .4rem}
@media (prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}th,td{border-color:#333}ins{background:#1f4d2b}
del{background:#5a2323}.quiet{color:#999}}
"""


_SCRIPT = """
'use strict';
const page = JSON.parse(document.getElementById('data').textContent);
function add(parent, tag, text, cls) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (cls) node.className = cls;
  parent.append(node);
  return node;
}
let sorted = {column: 0, down: false};
function order(a, b) {
  const x = a.cells[sorted.column].sort, y = b.cells[sorted.column].sort;
  if (x === y) return a.slot - b.slot;
  if (x === null || y === null) return x === null ? 1 : -1;
  return (x < y ? -1 : 1) * (sorted.down ? -1 : 1);
}
function show(cell, told) {
  if (told.parts === undefined) { cell.textContent = told.text; return; }
  const line = add(cell, 'div', null, 'statement');
  const tags = {same: 'span', old: 'del', new: 'ins'};
  for (const [kind, text] of told.parts) add(line, tags[kind], text);
  for (const field of told.fields) {
    if (!field.lines.length) { add(cell, 'div', field.head, 'quiet'); continue; }
    const open = add(cell, 'details');
    add(open, 'summary', field.head, 'quiet');
    for (const [mark, parts] of field.lines) {
      const line = add(open, 'div', mark + ' ', 'line');
      for (const [kind, text] of parts) add(line, tags[kind], text);
    }
  }
  if (told.reason) add(cell, 'div', told.reason);
}
function draw() {
  const words = document.getElementById('words').value.toLowerCase();
  const kind = document.getElementById('kind').value;
  const wanted = r => (kind === '' || r.kinds.includes(kind)) && r.search.includes(words);
  const rows = page.rows.filter(wanted).sort(order);
  const body = document.getElementById('rows');
  body.replaceChildren();
  for (const row of rows) {
    const tr = add(body, 'tr');
    tr.dataset.slot = row.slot;
    row.cells.forEach((told, k) => show(add(tr, 'td', null, page.columns[k][1]), told));
  }
  document.getElementById('shown').textContent = rows.length + ' of ' + page.rows.length + ' slots';
  document.querySelectorAll('#slots th').forEach((th, k) => th.setAttribute('aria-sort',
    k !== sorted.column ? 'none' : sorted.down ? 'descending' : 'ascending'));
}
const head = document.getElementById('heads');
page.columns.forEach(([name, cls], k) => {
  const button = add(add(head, 'th', null, cls), 'button', name);
  button.addEventListener('click', () => {
    sorted = {column: k, down: sorted.column === k && !sorted.down};
    draw();
  });
});
const kinds = document.getElementById('kind');
for (const kind of [...new Set(page.rows.flatMap(r => r.kinds))].sort()) add(kinds, 'option', kind).value = kind;
document.getElementById('words').addEventListener('input', draw);
kinds.addEventListener('change', draw);
draw();
"""


def document(
    name: str, lead: str, columns: Sequence[tuple[str, str]], rows: Sequence[Cell], foot: str
) -> str:
    """The whole page. `lead`: markup that stands before the table; `columns`: name and class ('n' for numbers)."""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(_SCRIPT)}'"
    told = markup(name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{told}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">\n<style>{_STYLE}</style></head><body>\n'
        f"<h1>{told}</h1>\n{lead}"
        '<h2>Slots</h2>\n<div id="controls"><label>Find <input id="words" type="search"></label>'
        '<label>Only <select id="kind"><option value="">all</option></select></label>'
        '<span id="shown" class="quiet"></span></div>\n'
        '<table id="slots"><thead><tr id="heads"></tr></thead><tbody id="rows"></tbody></table>\n'
        f'<script type="application/json" id="data">{_data({"columns": columns, "rows": rows})}</script>\n'
        f'<script>{_SCRIPT}</script>\n<p class="quiet">{markup(foot)}</p></body></html>\n'
    )


def row(slot: int, kinds: Sequence[str], cells: Sequence[Cell], words: Sequence[str]) -> dict[str, Any]:
    """A slot: what it can be filtered by (`kinds`, and any part of `words`), and its cells."""
    search = safe("\n".join([f"slot {slot}", *words])).lower()
    return {"slot": slot, "kinds": list(kinds), "cells": list(cells), "search": search}


def plain_cell(text: str, sort: str | int | None = None) -> Cell:
    """A cell of text, sorted by it or by `sort`."""
    return {"text": safe(text), "sort": safe(text) if sort is None else sort}


def share_cell(value: float | None) -> Cell:
    """A cell with an accuracy; one that was not measured comes last."""
    return {"text": share(value), "sort": value}


def task_cell(parts: Sequence[Part], fields: Sequence[Mapping[str, Any]] = (), reason: str = "") -> Cell:
    """A cell with an instruction, word by word, the fields that changed, and why; sorted by the new instruction."""
    text = "".join(part for kind, part in parts if kind != "old")
    shown = {
        "parts": [[kind, _safe_lines(part)] for kind, part in parts],
        "fields": [_field(field) for field in fields],
    }
    return {**shown, "reason": safe(reason), "sort": safe(text)}


def _field(field: Mapping[str, Any]) -> Cell:
    """A field's own line, and all below it; what did not change too, as there is room."""
    lines = field_lines(field, whole=True)
    return {
        "head": field_line(field),
        "lines": [[line.mark, [list(part) for part in line.parts]] for line in lines],
    }


def _safe_lines(text: str) -> str:
    return "\n".join(safe(line) for line in text.split("\n"))


def write_page(path: Path, page: str) -> None:
    """Write a page. Raises `TaskBufferError` where it cannot be written."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise TaskBufferError(f"{path}: {error.strerror}") from error


def markup(text: str) -> str:
    """Text for the page's markup: escaped, and without hidden characters."""
    return escape(safe(text))


def _data(value: Mapping[str, Any]) -> str:
    """JSON that cannot end its script element, whatever the tasks say."""
    text = json.dumps(value, sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
