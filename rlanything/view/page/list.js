'use strict';
// The list: tasks with rollouts that filters and search leave over.
const A_PAGE = 100;
let hits = [];    // [group, rows that match], in order
let standing = new Uint8Array();   // of every row: 0 left out, 1 in the list, 2 + j left out by bar j alone
let listed = 0;   // how many of them are in the page
const placed = new WeakMap();      // of an index: the group of every place

function matching(index, mask) {
  const {first, count, iteration} = index.groups, {flags, peak} = index.rows;
  const names = Object.keys(index.filters);
  const wanted = state.filters.reduce((bits, name) => name === NOTED ? bits : bits | (1 << names.indexOf(name)), 0);
  const noted = state.filters.includes(NOTED) ? notedRows(index) : null;
  const bars = state.bars.map(bar => testOf(index, bar));
  const found = [];
  standing = new Uint8Array(flags.length);
  for (let group = 0; group < first.length; group++) {
    if (state.scope !== '' && iteration[group] !== Number(state.scope)) continue;
    const rows = [];
    for (let row = first[group]; row < first[group] + count[group]; row++) {
      if ((flags[row] & wanted) !== wanted || (mask && !mask[row]) || (noted && !noted.has(row))) continue;
      if (state.least !== '' && (peak[row] === null || peak[row] < Number(state.least))) continue;   // null >= 0 is true
      standing[row] = standingOf(bars, row);
      if (standing[row] === 1) rows.push(row);
    }
    if (rows.length) found.push([group, rows]);
  }
  return found.sort(([a], [b]) => iteration[b] - iteration[a] || a - b);   // the latest iteration first
}

function standingOf(bars, row) {
  const against = bars.findIndex(test => !test(row));
  if (against < 0) return 1;
  return bars.some((test, j) => j > against && !test(row)) ? 0 : 2 + against;
}

function notedRows(index) { return new Set(notesOf(index).map(note => rowOf(index, note))); }

function groupOf(index, iteration, slot, rewrite) {
  if (!placed.has(index)) {
    const {iteration: iterations, slot: slots, proposal} = index.groups;
    placed.set(index, new Map(iterations.map((it, g) => [it + '/' + slots[g] + '/' + proposal[g], g])));
  }
  return placed.get(index).get(iteration + '/' + slot + '/' + rewrite) ?? -1;
}

// The row of a rollout; -1: there is none.
function rowOf(index, {iteration, slot, rewrite, rollout}) {
  const group = groupOf(index, iteration, slot, rewrite);
  if (group < 0) return -1;
  const {first, count} = index.groups;
  const found = index.rows.rollout.indexOf(rollout, first[group]);
  return found < first[group] + count[group] ? found : -1;
}

// Another task has nothing beside it yet.
function placeOf(index, group, row) {
  const {iteration, slot, proposal} = index.groups;
  return {i: iteration[group], s: slot[group], p: proposal[group], r: index.rows.rollout[row], t: '', side: null};
}

function drawList(index) {
  listed = 0;
  document.getElementById('list').replaceChildren();
  const rollouts = hits.reduce((sum, [, rows]) => sum + rows.length, 0);
  const all = index.rows.rollout.length;
  const tasks = hits.length === 1 ? '1 task' : hits.length.toLocaleString('en') + ' tasks';
  document.getElementById('shown').textContent =
    rollouts.toLocaleString('en') + ' of ' + all.toLocaleString('en') + ' rollouts, in ' + tasks;
  drawMore(index);
  drawBars(index, standing);
}

function drawMore(index) {
  const list = document.getElementById('list');
  const noted = notedRows(index);
  for (const [group, rows] of hits.slice(listed, listed + A_PAGE)) drawGroup(list, index, group, new Set(rows), noted);
  listed = Math.min(hits.length, listed + A_PAGE);
  document.getElementById('more').hidden = listed === hits.length;
}

function drawGroup(list, index, group, rows, noted) {
  const {iteration, slot, proposal, task, accuracy, first, count} = index.groups;
  const item = add(list, 'li');
  item.dataset.group = group;
  const place = 'iteration ' + iteration[group] + ', slot ' + slot[group] + (proposal[group] ? ', rewrite' : '');
  add(item, 'div', place + ', accuracy ' + share(accuracy[group]), 'quiet');
  addText(item, 'div', index.tasks[task[group]], 'instruction');
  const line = add(item, 'div', null, 'marks');
  for (let row = first[group]; row < first[group] + count[group]; row++) {
    const [sign, cls, name] = outcomeOf(index.rows.outcome[row], index.statuses[index.rows.status[row]]);
    const mark = link(line, placeOf(index, group, row), index.rows.rollout[row] + sign, cls);
    mark.title = 'rollout ' + index.rows.rollout[row] + ': ' + name + (noted.has(row) ? ', with a note' : '');
    mark.dataset.row = row;
    if (noted.has(row)) mark.append(' ✎');
    if (!rows.has(row)) mark.classList.add('off');
  }
}

function outcomeOf(outcome, status) {
  if (BROKEN.includes(status)) return ['!', 'crashed', 'no outcome: ' + status];
  return outcome > 0 ? ['✓', 'solved', 'success'] : ['✗', 'failed', 'no success'];
}

function markCurrent(row) {
  for (const mark of document.querySelectorAll('#list [aria-current]')) mark.removeAttribute('aria-current');
  const mark = document.querySelector('#list [data-row="' + row + '"]');
  if (mark) {
    mark.setAttribute('aria-current', 'true');
    mark.scrollIntoView({block: 'nearest'});
  }
}

// The row `by` places after the current one in the list; by tasks: the first of another task. The first row where the
// current one is not listed.
function neighbour(row, by, tasks) {
  const here = hits.findIndex(([, rows]) => rows.includes(row));
  if (here < 0) return hits.length ? hits[0][1][0] : undefined;
  const place = hits[here][1].indexOf(row) + by;
  if (!tasks && place >= 0 && place < hits[here][1].length) return hits[here][1][place];
  const other = hits[here + by];
  return other && other[1].at(tasks || by > 0 ? 0 : -1);
}
