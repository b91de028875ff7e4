"""`diff A B` as one page that needs nothing else: it can be filtered and sorted, and task text stays text in it.

The comparison lies in the page as data. Its script builds the tables from text nodes alone; a content policy lets the
browser run that one script, known by its hash, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rlanything.buffer.compare.page import SCHEMA
from rlanything.buffer.compare.text import counts_line, field_line, inside_line, title
from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.render import safe

_LISTED = 12
"""Values that the concentration shows."""
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;
border-bottom:1px solid #ddd;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid #06c}
ins{background:#d9f2dd;text-decoration:none}del{background:#fbdcdc}.quiet{color:#666}.old{background:#d77}.new{background:#5a9}
.bar{display:inline-block;height:.8rem;vertical-align:middle;margin-right:.4rem}
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
const columns = [['slot', r => r.slot, 'n'], ['versions', r => r.path], ['change', r => r.change],
  ['old', r => r.old, 'n'], ['new', r => r.new, 'n'], ['task', r => r.text]];
let sorted = {column: 0, down: false};
const share = value => value === null ? '?' : value.toFixed(3);
function order(a, b) {
  const value = columns[sorted.column][1], x = value(a), y = value(b);
  if (x === y) return a.slot - b.slot;
  if (x === null || y === null) return x === null ? 1 : -1;
  return (x < y ? -1 : 1) * (sorted.down ? -1 : 1);
}
function task(cell, row) {
  const line = add(cell, 'div');
  const tags = {same: 'span', old: 'del', new: 'ins'};
  for (const [kind, text] of row.instruction) add(line, tags[kind], text);
  for (const field of row.fields) add(cell, 'div', field, 'quiet');
  if (row.reason) add(cell, 'div', row.reason);
}
function draw() {
  const words = document.getElementById('words').value.toLowerCase();
  const kind = document.getElementById('kind').value;
  const rows = page.filter(r => (kind === '' || r.kinds.includes(kind)) && r.search.includes(words)).sort(order);
  const body = document.getElementById('rows');
  body.replaceChildren();
  for (const row of rows) {
    const tr = add(body, 'tr');
    tr.dataset.slot = row.slot;
    add(tr, 'td', row.slot, 'n'); add(tr, 'td', row.path); add(tr, 'td', row.change);
    add(tr, 'td', share(row.old), 'n'); add(tr, 'td', share(row.new), 'n');
    task(add(tr, 'td'), row);
  }
  document.getElementById('shown').textContent = rows.length + ' of ' + page.length + ' slots';
  document.querySelectorAll('#slots th').forEach((th, k) => th.setAttribute('aria-sort',
    k !== sorted.column ? 'none' : sorted.down ? 'descending' : 'ascending'));
}
const head = document.getElementById('heads');
columns.forEach(([name, , cls], k) => {
  const button = add(add(head, 'th', null, cls), 'button', name);
  button.addEventListener('click', () => {
    sorted = {column: k, down: sorted.column === k && !sorted.down};
    draw();
  });
});
const kinds = document.getElementById('kind');
for (const kind of [...new Set(page.flatMap(r => r.kinds))].sort()) add(kinds, 'option', kind).value = kind;
document.getElementById('words').addEventListener('input', draw);
kinds.addEventListener('change', draw);
draw();
"""


def write_page(path: Path, page: Mapping[str, Any]) -> None:
    """Write the page. Raises `TaskBufferError` where it cannot be written."""
    try:
        path.write_text(diff_html(page), encoding="utf-8")
    except OSError as error:
        raise TaskBufferError(f"{path}: {error.strerror}") from error


def diff_html(page: Mapping[str, Any]) -> str:
    """The whole page."""
    rows = [_row(row) for row in page["slots"] or []]
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(_SCRIPT)}'"
    name = _text(title(page))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">\n<style>{_STYLE}</style></head><body>\n'
        f"<h1>{name}</h1>\n<p>{_text(counts_line(page['counts']))}</p>\n"
        f"{_difficulty(page['difficulty'])}{_concentration(page['concentration'])}"
        '<h2>Slots</h2>\n<div id="controls"><label>Find <input id="words" type="search"></label>'
        '<label>Only <select id="kind"><option value="">all</option></select></label>'
        '<span id="shown" class="quiet"></span></div>\n'
        '<table id="slots"><thead><tr id="heads"></tr></thead><tbody id="rows"></tbody></table>\n'
        f'<script type="application/json" id="data">{_data(rows)}</script>\n<script>{_SCRIPT}</script>\n'
        f'<p class="quiet">rlanything buffer diff, schema {SCHEMA}</p></body></html>\n'
    )


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    change = ", ".join(row["directions"]) or row["status"]
    text = "".join(part for kind, part in row["instruction"] if kind != "old")
    fields = [safe(field_line(field)) for field in row["fields"]]
    old, new = row["accuracy"]["old"], row["accuracy"]["new"]
    words = [
        f"slot {row['slot']}",
        "".join(part for _, part in row["instruction"]),
        change,
        *fields,
        row["reason"],
    ]
    return {
        "slot": row["slot"],
        "path": row["path"],
        "change": change,
        "kinds": [row["status"], *(["rejected"] if row["refused"] else [])],
        "old": old,
        "new": new,
        "text": text,
        "instruction": [[kind, safe(part)] for kind, part in row["instruction"]],
        "fields": fields,
        "reason": safe(row["reason"]),
        "search": safe("\n".join(words)).lower(),
    }


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
        f"<h2>Difficulty</h2>\n<p>Inside the band {_text(inside_line(told['inside']))}; {missing}</p>\n"
        f"<table><tbody>{''.join(rows)}</tbody></table>\n"
    )


def _bar(side: str, count: int, most: int) -> str:
    width = 30 * count / most
    return f'<div><span class="bar {side}" style="width:{width:.2f}rem"></span>{count} {side}</div>'


def _concentration(rows: list[Mapping[str, Any]]) -> str:
    cells = "".join(
        f"<tr><td>{_text(row['field'])}</td><td>{_text(row['value'])}</td>"
        f'<td class="n">{row["changed"]} of {row["tasks"]}</td><td class="n">{row["ratio"]:.2f}</td>'
        f'<td class="n">{row["p"]:.2g}</td></tr>\n'
        for row in [row for row in rows if row["ratio"] > 1][:_LISTED]
    )
    numbers = "".join(f'<th class="n">{name}</th>' for name in ("changed", "ratio", "p"))
    heads = f"<tr><th>field</th><th>value</th>{numbers}</tr>"
    table = f"<table><thead>{heads}</thead><tbody>{cells}</tbody></table>\n" if cells else "<p>nowhere</p>\n"
    return f"<h2>Where the change concentrates</h2>\n{table}"


def _text(text: str) -> str:
    return escape(safe(text))


def _data(rows: list[dict[str, Any]]) -> str:
    """JSON that cannot end its script element, whatever the tasks say."""
    return (
        json.dumps(rows, sort_keys=True)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
