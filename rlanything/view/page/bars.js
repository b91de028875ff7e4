'use strict';
// How the rollouts that are left are distributed. A bar is a filter: its range is in the address.
const MOST_BARS = 12;
const SMALLEST = 1e-4;   // to which the index rounds
const BROKEN = ['env_error', 'timeout'];
const byGroup = name => index => spread(index, index.groups[name]);
const SHAPES = {
  outcome: ['Outcome', index => index.rows.outcome.map((value, row) => BROKEN.includes(index.statuses[index.rows.status[row]]) ? null : value)],
  length: ['Length in steps', index => index.rows.steps],
  reward: ['Mean R', index => index.rows.reward],
  vote: ['Mean vote', index => index.rows.vote],
  advantage: ['Mean advantage', index => index.rows.advantage],
  accuracy: ['Accuracy of the task', byGroup('accuracy')],
  iteration: ['Iteration', byGroup('iteration')],
};
const shapes = new WeakMap();   // by index and name, what `shapeOf` made

function spread(index, values) {
  const found = [];
  index.groups.count.forEach((many, group) => { for (let k = 0; k < many; k++) found.push(values[group]); });
  return found;
}

// Of every row the value and the number of its bar; of every bar the range [low, high), or null for rows without a value.
function shapeOf(index, name) {
  const known = shapes.get(index) || {};
  shapes.set(index, known);
  if (known[name]) return known[name];
  const values = SHAPES[name][1](index);
  const {ranges, place} = rangesOf(values.filter(value => value !== null));
  const missing = values.includes(null);
  const bars = Uint8Array.from(values, value => value === null ? ranges.length : place(value));
  return known[name] = {values, bars, ranges: missing ? [...ranges, [null, null]] : ranges};
}

// A bar for each value, or bars of one width of 1, 2 or 5 times a power of ten.
function rangesOf(values) {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const whole = distinct.every(Number.isInteger), unit = whole ? 1 : SMALLEST;
  if (distinct.length <= MOST_BARS) {
    const places = new Map(distinct.map((value, k) => [value, k]));
    return {ranges: distinct.map(value => [value, rounded(value + unit)]), place: value => places.get(value)};
  }
  const least = distinct[0], most = distinct.at(-1);
  const power = 10 ** Math.floor(Math.log10((most - least + unit) / MOST_BARS));
  const width = [1, 2, 5, 10].map(k => k * power).find(w => w * MOST_BARS >= most - least + unit);
  const step = inUnits(width), at = value => Math.floor(inUnits(value) / step), first = at(least);
  const ranges = Array.from({length: at(most) - first + 1}, (_, k) => [rounded((first + k) * width), rounded((first + k + 1) * width)]);
  return {ranges, place: value => at(value) - first};
}

// A value as a whole number of the smallest difference: whole numbers are divided without a rounding error.
function inUnits(value) { return Math.round(value / SMALLEST); }

function rounded(value) { return Number(value.toFixed(4)); }

// Whether a row is in the range of a bar.
function testOf(index, {name, low, high}) {
  const {values} = shapeOf(index, name);
  return low === null ? row => values[row] === null : row => values[row] !== null && values[row] >= low && values[row] < high;
}

function rangeWords(name, [low, high]) {
  if (low === null) return 'none';
  if (name === 'outcome' && high - low <= 1) return low > 0 ? 'success' : 'no success';
  const number = value => (value < 0 ? '−' : '') + Math.abs(value);
  if (high - low < 1.5 * SMALLEST || (high - low === 1 && Number.isInteger(low))) return number(low);
  return Number.isInteger(low) && Number.isInteger(high) && ['length', 'iteration'].includes(name) ? number(low) + ' to ' + number(high - 1) : number(low) + ' to below ' + number(high);
}

// Of every bar the rows that all other filters leave; `standing`: see `matching`.
function countsOf(index, name, standing) {
  const {bars, ranges} = shapeOf(index, name);
  const own = 2 + state.bars.findIndex(bar => bar.name === name);
  const counts = new Uint32Array(ranges.length);
  for (let row = 0; row < bars.length; row++) if (standing[row] === 1 || (own > 1 && standing[row] === own)) counts[bars[row]]++;
  return counts;
}

function within(bar, [low, high]) { return bar && (bar.low === null || low === null ? bar.low === low : low >= bar.low && high <= bar.high); }

function barChosen(name, [low, high], further) {
  const now = state.bars.find(bar => bar.name === name), others = state.bars.filter(bar => bar.name !== name);
  if (further && now && now.low !== null && low !== null) return [...others, {name, low: Math.min(low, now.low), high: Math.max(high, now.high)}];
  return within(now, [low, high]) && !further ? others : [...others, {name, low, high}];
}
