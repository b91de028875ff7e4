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
    row.cells.forEach((told, k) => {
      const cell = add(tr, 'td', null, page.columns[k][1]);
      cell.dataset.column = page.columns[k][0];
      show(cell, told);
    });
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
