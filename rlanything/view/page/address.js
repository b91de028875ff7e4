'use strict';
// What is shown follows from the URL's hash: g run, i iteration, s slot, p rewrite, r rollout, t step; q words, f filters,
// a least advantage, k iteration that is listed, h bars, c the rollout beside it.
const state = {g: 0, i: null, s: null, p: 0, r: 0, t: '', q: '', words: [], filters: [], least: '', scope: '', bars: [], side: null};
const NOTED = 'noted';   // the filter that only the reader's browser can answer
const PLACE = /^([01])\.(\d{1,9})\.(\d{1,9})\.([01])\.(\d{1,9})$/;
const BAR = /^([a-z]{1,20})_(?:none|(-?\d{1,9}(?:\.\d{1,4})?)_(-?\d{1,9}(?:\.\d{1,4})?))$/;

function hashOf(change) {
  const now = {...state, ...change};
  const place = {g: now.g || '', i: now.i, s: now.s, p: now.p || '', r: now.r, t: now.t};
  const found = {q: now.q, f: now.filters.join(','), a: now.least, k: now.scope, h: now.bars.map(barName).join('*')};
  const all = {...place, ...found, c: now.side ? [now.side.g, now.side.i, now.side.s, now.side.p, now.side.r].join('.') : ''};
  const kept = Object.entries(all).filter(([, value]) => value !== '' && value !== null);
  return '#' + new URLSearchParams(kept);
}

function barName({name, low, high}) { return name + '_' + (low === null ? 'none' : low + '_' + high); }

function barOf(text) {
  const [, name, low, high] = BAR.exec(text) || [];
  if (!name || !Object.hasOwn(SHAPES, name)) return [];
  return [low === undefined ? {name, low: null, high: null} : {name, low: Number(low), high: Number(high)}];
}

function sideOf(text, index) {
  const [g, i, s, p, r] = (PLACE.exec(text) || []).slice(1).map(Number);
  return g === undefined || g >= index.runs.length ? null : {g, i, s, p, r};
}

function readHash(index) {
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => /^\d{1,9}$/.test(asked.get(name) || '') ? Number(asked.get(name)) : otherwise;
  const known = name => name === NOTED || Object.hasOwn(index.filters, name);
  const filters = (asked.get('f') || '').split(',').filter(known);
  const q = asked.get('q') || '';
  const bars = (asked.get('h') || '').split('*').flatMap(barOf);
  Object.assign(state, {g: Math.min(number('g', 0), index.runs.length - 1), i: number('i', null), s: number('s', null)});
  Object.assign(state, {p: number('p', 0), r: number('r', null), t: number('t', '')});
  Object.assign(state, {q, words: wordsOf(q), filters, least: number('a', '') === '' ? leastOf(asked.get('a')) : number('a', ''), scope: number('k', '')});
  Object.assign(state, {bars: bars.filter((bar, k) => bars.findIndex(one => one.name === bar.name) === k), side: sideOf(asked.get('c') || '', index)});
}

// What an address leaves out: the first task of the iteration, the first rollout of the task.
function completePlace(index) {
  const {iteration, slot, proposal, first} = index.groups;
  if (state.i === null) Object.assign(state, placeOf(index, groupAt(index.start), index.start), {side: state.side});
  if (state.s === null) {
    const asked = iteration.findIndex((it, g) => it === state.i && proposal[g] === state.p);
    const g = asked < 0 ? iteration.indexOf(state.i) : asked;
    if (g >= 0) Object.assign(state, {s: slot[g], p: proposal[g]});
  }
  const group = groupOf(index, state.i, state.s, state.p);
  if (state.r === null && group >= 0) state.r = index.rows.rollout[first[group]];
}

function leastOf(text) { return /^\d{0,6}\.\d{1,4}$/.test(text || '') ? Number(text) : ''; }

// Typing and steps replace the address; what a reader chooses can be taken back with the browser's button.
function go(change) { location.replace(hashOf(change)); }

function goForth(change) { location.hash = hashOf(change); }
