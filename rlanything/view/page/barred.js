'use strict';
// The bars as buttons, a row of them for each distribution, and the filters that they set.
function drawBars(index, standing) {
  drawChosen();
  const fold = document.getElementById('bars'), place = document.getElementById('shapes');
  if (!fold.open) return;
  if (place.dataset.run !== String(state.g)) {
    place.replaceChildren();
    place.dataset.run = state.g;
    for (const name of Object.keys(SHAPES)) if (shapeOf(index, name).ranges.some(([low]) => low !== null)) makeShape(place, index, name);
  }
  for (const shape of place.children) fillShape(shape, index, standing);
}

function makeShape(place, index, name) {
  const shape = add(place, 'fieldset', null, 'shape');
  shape.dataset.name = name;
  add(shape, 'legend', SHAPES[name][0]);
  const line = add(shape, 'div', null, 'line');
  const said = add(shape, 'div', null, 'quiet said-of-bar');
  shapeOf(index, name).ranges.forEach((range, k) => {
    const bar = add(line, 'button', null, 'bar');
    Object.assign(bar, {type: 'button', tabIndex: k ? -1 : 0});
    add(bar, 'span');
    bar.addEventListener('click', event => goForth({bars: barChosen(name, range, event.shiftKey)}));
    for (const kind of ['focus', 'mouseenter']) bar.addEventListener(kind, () => { said.textContent = bar.title; });
    for (const kind of ['blur', 'mouseleave']) bar.addEventListener(kind, () => { said.textContent = line.title; });
  });
  line.addEventListener('keydown', event => moveAlong(event, [...line.children]));
}

// One stop of the tab key for each distribution; the arrows move in it.
function moveAlong(event, bars) {
  const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  const next = by && bars[bars.indexOf(event.target) + by];
  if (!next) return;
  event.preventDefault();
  for (const bar of bars) bar.tabIndex = bar === next ? 0 : -1;
  next.focus();
}

function fillShape(shape, index, standing) {
  const {name} = shape.dataset;
  const {ranges} = shapeOf(index, name), counts = countsOf(index, name, standing), most = Math.max(1, ...counts);
  const chosen = state.bars.find(bar => bar.name === name);
  const [, line, said] = shape.children;
  [...line.children].forEach((bar, k) => {
    bar.title = rangeWords(name, ranges[k]) + ': ' + count(counts[k].toLocaleString('en'), 'rollout');
    bar.setAttribute('aria-label', SHAPES[name][0] + ' ' + bar.title);
    bar.setAttribute('aria-pressed', Boolean(within(chosen, ranges[k])));
    bar.classList.toggle('pale', Boolean(chosen) && !within(chosen, ranges[k]));
    bar.firstChild.style.height = (counts[k] ? Math.max(3, 100 * counts[k] / most) : 0) + '%';
  });
  const ends = ranges.filter(([low]) => low !== null);
  line.title = [...new Set([ends[0], ends.at(-1)].map(range => rangeWords(name, range)))].join(' … ') + ', at most ' + most.toLocaleString('en') + ' a bar';
  if (!shape.contains(document.activeElement)) said.textContent = line.title;
}

// The chosen bars as links that take them back.
function drawChosen() {
  const place = document.getElementById('chosen');
  place.replaceChildren();
  place.hidden = !state.bars.length;
  if (state.bars.length) add(place, 'span', 'Bars: ', 'quiet');
  for (const bar of state.bars) {
    link(place, {bars: state.bars.filter(one => one !== bar)}, SHAPES[bar.name][0] + ' ' + rangeWords(bar.name, [bar.low, bar.high]) + ' ✕');
    place.append(' ');
  }
}
