'use strict';
// The list: tasks with rollouts that filters and search leave over.
const A_PAGE = 100;
let hits = [];    // [group, rows that match], in order
let listed = 0;   // how many of them are in the page

function matching(index, mask) {
  const {first, count, iteration} = index.groups, {flags, peak} = index.rows;
  const names = Object.keys(index.filters);
  const wanted = state.filters.reduce((bits, name) => bits | (1 << names.indexOf(name)), 0);
  const found = [];
  for (let group = 0; group < first.length; group++) {
    if (state.scope !== '' && iteration[group] !== Number(state.scope)) continue;
    const rows = [];
    for (let row = first[group]; row < first[group] + count[group]; row++) {
      if ((flags[row] & wanted) !== wanted || (mask && !mask[row])) continue;
      if (state.least !== '' && !(peak[row] >= Number(state.least))) continue;
      rows.push(row);
    }
    if (rows.length) found.push([group, rows]);
  }
  return found.sort(([a], [b]) => iteration[b] - iteration[a] || a - b);   // the latest iteration first
}

function placeOf(index, group, row) {
  const {iteration, slot, proposal} = index.groups;
  return {i: iteration[group], s: slot[group], p: proposal[group], r: index.rows.rollout[row], t: ''};
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
}

function drawMore(index) {
  const list = document.getElementById('list');
  for (const [group, rows] of hits.slice(listed, listed + A_PAGE)) drawGroup(list, index, group, new Set(rows));
  listed = Math.min(hits.length, listed + A_PAGE);
  document.getElementById('more').hidden = listed === hits.length;
}

function drawGroup(list, index, group, rows) {
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
    mark.title = 'rollout ' + index.rows.rollout[row] + ': ' + name;
    mark.dataset.row = row;
    if (!rows.has(row)) mark.classList.add('off');
  }
}

function outcomeOf(outcome, status) {
  if (status === 'env_error' || status === 'timeout') return ['!', 'crashed', 'no outcome: ' + status];
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
