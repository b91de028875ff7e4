'use strict';
// What is shown follows from the URL's hash: i iteration, s slot, p rewrite, r rollout, t step; q words, f filters,
// a least advantage, k iteration that is listed.
const state = {i: null, s: null, p: 0, r: 0, t: '', q: '', words: [], filters: [], least: '', scope: ''};
let index = null;
let drawnList = null, drawnRow = null, shownStep = null, turn = 0, row = 0;

function hashOf(change) {
  const now = {...state, ...change};
  const all = {i: now.i, s: now.s, p: now.p || '', r: now.r, t: now.t, q: now.q, f: now.filters.join(','), a: now.least, k: now.scope};
  const kept = Object.entries(all).filter(([, value]) => value !== '' && value !== null);
  return '#' + new URLSearchParams(kept);
}

function readHash() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => /^\d{1,9}$/.test(asked.get(name) || '') ? Number(asked.get(name)) : otherwise;
  const filters = (asked.get('f') || '').split(',').filter(name => Object.hasOwn(index.filters, name));
  const q = asked.get('q') || '';
  Object.assign(state, {i: number('i', null), s: number('s', null), p: number('p', 0), r: number('r', 0), t: number('t', '')});
  Object.assign(state, {q, words: wordsOf(q), filters, least: number('a', '') === '' ? leastOf(asked.get('a')) : number('a', ''), scope: number('k', '')});
}

function leastOf(text) { return /^\d{0,6}\.\d{1,4}$/.test(text || '') ? Number(text) : ''; }

function tell(error) {
  const place = document.getElementById('problem');
  place.hidden = false;
  place.textContent = visible(error.message);
}

function findGroup() {
  const {iteration, slot, proposal} = index.groups;
  return iteration.findIndex((it, g) => it === state.i && slot[g] === state.s && proposal[g] === state.p);
}

function groupAt(wanted) {
  return index.groups.first.findIndex((first, g) => wanted >= first && wanted < first + index.groups.count[g]);
}

async function show() {
  const mine = ++turn;
  document.getElementById('problem').hidden = true;
  readHash();
  if (state.i === null) Object.assign(state, placeOf(index, groupAt(index.start), index.start));
  await showList(mine);
  if (mine === turn) await showPlace(mine);
}

async function showList(mine) {
  const wanted = JSON.stringify([state.words, state.filters, state.least, state.scope]);
  if (wanted === drawnList) return;
  const mask = await search(state.words, index);
  if (mine !== turn) return;
  drawnList = wanted;
  drawnRow = null;
  hits = matching(index, mask);
  fillControls();
  drawList(index);
}

async function showPlace(mine) {
  const g = findGroup();
  if (g < 0) throw new Error('this run has no iteration ' + state.i + ' with slot ' + state.s + (state.p ? ' and a rewrite' : ''));
  const {first, count: many} = index.groups;
  row = index.rows.rollout.indexOf(state.r, first[g]);
  if (row < 0 || row >= first[g] + many[g]) throw new Error('slot ' + state.s + ' has no rollout ' + state.r + ' there');
  const found = await part('iterations/' + state.i);
  if (mine !== turn) return;
  const group = found.find(one => one.slot === state.s && Number(one.proposal) === state.p);
  if (drawnRow !== row) {
    drawTask(document.getElementById('task'), index, group, row);
    drawRollout(document.getElementById('rollout'), index, group, group.rollouts[row - first[g]]);
    drawnRow = row;
  }
  markCurrent(row);
  showStep();
  document.body.dataset.shown = location.hash;
  performance.mark('shown');
}

function showStep() {
  for (const other of document.querySelectorAll('.step.current')) other.classList.remove('current');
  const step = state.t === '' ? null : document.getElementById('step-' + state.t);
  const moved = shownStep !== row + '/' + state.t;   // other changes, such as typed words, move nothing
  shownStep = row + '/' + state.t;
  if (step) step.classList.add('current');
  if (!step || !moved) return;
  step.focus({preventScroll: true});
  step.scrollIntoView({block: 'start'});
}

function fillControls() {
  if (document.activeElement.id !== 'words') document.getElementById('words').value = state.q;
  document.getElementById('scope').value = state.scope;
  if (document.activeElement.id !== 'least') document.getElementById('least').value = state.least;
  for (const box of document.querySelectorAll('#filters input')) box.checked = state.filters.includes(box.value);
}

function controlled() {
  const filters = [...document.querySelectorAll('#filters input:checked')].map(box => box.value);
  const least = document.getElementById('least').value;
  location.replace(hashOf({q: document.getElementById('words').value, filters, least, scope: document.getElementById('scope').value}));
}

function makeControls() {
  document.getElementById('run').textContent = visible(index.run);
  const kind = index.writes === 'votes' ? 'votes on steps' : 'unit tests';
  document.getElementById('about').textContent = visible(index.state + '; ' + kind + '; λ = ' + index.lambda + '; rlanything ' + index.version);
  for (const number of new Set(index.groups.iteration)) add(document.getElementById('scope'), 'option', number).value = number;
  for (const [name, [said, meaning]] of Object.entries(index.filters)) {
    const label = add(document.getElementById('filters'), 'label');
    const box = add(label, 'input');
    Object.assign(box, {type: 'checkbox', value: name});
    label.append(' ' + said);
    label.title = meaning;
    add(document.getElementById('meanings'), 'dt', said);
    add(document.getElementById('meanings'), 'dd', meaning);
  }
  for (const note of index.notes) add(document.getElementById('meanings'), 'dd', 'note: ' + note);
}

const KEYS = {
  j: () => go({t: Math.min((state.t === '' ? -1 : state.t) + 1, document.querySelectorAll('.step').length - 1)}),
  k: () => go({t: Math.max((state.t === '' ? 0 : state.t) - 1, 0)}),
  n: () => goRow(neighbour(row, 1, false)),
  p: () => goRow(neighbour(row, -1, false)),
  N: () => goRow(neighbour(row, 1, true)),
  P: () => goRow(neighbour(row, -1, true)),
  t: () => { const fold = document.querySelector('.step.current .tokens'); if (fold) fold.open = !fold.open; },
  '/': () => document.getElementById('words').select(),
  '?': () => document.getElementById('keys').showModal(),
};

function go(change) { location.replace(hashOf(change)); }

function goRow(next) { if (next !== undefined) location.hash = hashOf(placeOf(index, groupAt(next), next)); }

function pressed(event) {
  const typing = event.target.matches('input, select');
  if (event.key === 'Escape' && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById('keys').open) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function start() {
  index = await part('index');
  makeControls();
  const shown = () => show().catch(tell);
  window.addEventListener('hashchange', shown);
  document.getElementById('controls').addEventListener('input', controlled);
  document.getElementById('controls').addEventListener('submit', event => event.preventDefault());
  document.getElementById('more').addEventListener('click', () => drawMore(index));
  document.getElementById('help').addEventListener('click', () => document.getElementById('keys').showModal());
  document.addEventListener('keydown', pressed);
  await show();
}

start().catch(tell);
