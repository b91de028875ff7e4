'use strict';
// Draws what the address asks for: the list, the task, the rollout, and another one beside it.
let index = null;
let drawnList = null, drawnRow = null, drawnSide = null, shownStep = null, turn = 0, row = 0;

function tell(error) {
  const place = document.getElementById('problem');
  place.hidden = false;
  place.textContent = visible(error.message);
}

function groupAt(wanted) {
  return index.groups.first.findIndex((first, g) => wanted >= first && wanted < first + index.groups.count[g]);
}

async function show() {
  const mine = ++turn;
  document.getElementById('problem').hidden = true;
  readHash(index);
  const found = await part('index', state.g);
  if (mine !== turn) return;
  if (found !== index) useRun(found);
  completePlace(index);
  if (groupOf(index, state.i, state.s, state.p) >= 0) part('iterations/' + state.i).catch(() => {});   // loads while the list is drawn
  await showList(mine);
  if (mine === turn) await showPlace(mine);
}

function useRun(found) {
  index = found;
  drawnList = drawnRow = drawnSide = null;
  drawControls();
  drawNotes(index);
}

async function showList(mine) {
  const wanted = JSON.stringify([state.words, state.filters, state.least, state.scope, state.bars]);
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
  const g = groupOf(index, state.i, state.s, state.p);
  if (g < 0) throw new Error('this run has no iteration ' + state.i + (state.s === null ? '' : ' with slot ' + state.s) + (state.p ? ' and a rewrite' : ''));
  row = rowOf(index, {iteration: state.i, slot: state.s, rewrite: state.p, rollout: state.r});
  if (row < 0) throw new Error('slot ' + state.s + ' has no rollout ' + state.r + ' there');
  const found = await part('iterations/' + state.i);
  if (mine !== turn) return;
  const group = found.find(one => one.slot === state.s && Number(one.proposal) === state.p);
  const rollout = group.rollouts[row - index.groups.first[g]];
  if (drawnRow !== row) {
    drawTask(document.getElementById('task'), index, group, row);
    drawRollout(document.getElementById('rollout'), index, group, rollout);
    drawnRow = row;
    drawnSide = null;
  }
  await showBeside(mine, group, rollout);
  if (mine !== turn) return;
  markCurrent(row);
  showStep();
  document.body.dataset.shown = location.hash;
  performance.mark('shown');
}

async function showBeside(mine, group, rollout) {
  const wanted = JSON.stringify(state.side), place = document.getElementById('side-by-side');
  if (wanted === drawnSide) return;
  chooseBeside();
  place.replaceChildren();
  const right = state.side ? await findBeside() : null;
  if (mine !== turn) return;
  drawnSide = wanted;
  if (right) drawBeside(place, {index, at: placeBeside(group, rollout.rollout), group, rollout}, right);
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

async function start() {
  index = await part('index', 0);
  makeControls();
  makeNotes();
  drawControls();
  drawNotes(index);
  readHash(index);
  document.getElementById('bars').open = state.bars.length > 0;
  document.getElementById('bars').addEventListener('toggle', () => drawBars(index, standing));
  const shown = () => show().catch(tell);
  window.addEventListener('hashchange', shown);
  document.getElementById('more').addEventListener('click', () => drawMore(index));
  document.addEventListener('keydown', pressed);
  await show();
}

start().catch(tell);
