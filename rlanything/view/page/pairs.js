'use strict';
// The steps of two rollouts beside each other; those before they part are folded.
function drawPairs(place, left, right) {
  const at = partingOf(left.rollout, right.rollout);
  const most = Math.max(left.rollout.steps.length, right.rollout.steps.length);
  const same = at === null ? most : at;
  if (left.rollout.first_observation !== right.rollout.first_observation) {
    add(place, 'p', 'They begin with different observations.', 'told');
  }
  if (same) addFold(place, count(same, 'step') + ' with the same actions', fold => drawRange(fold, left, right, 0, same, at), 'same');
  if (same < most) drawRange(place, left, right, same, most, at);
}

function drawRange(place, left, right, from, to, at) {
  const body = addTable(place, ['step', 'left', 'right'], []);
  body.parentElement.classList.add('pairs');
  for (let k = from; k < to; k++) {
    const tr = add(body, 'tr', null, k === at ? 'parting' : '');
    const head = add(tr, 'th', k);
    head.scope = 'row';
    if (k === at) add(head, 'div', 'they part', 'quiet');
    drawHalf(tr, left, right, k);
    drawHalf(tr, right, left, k);
  }
}

function drawHalf(tr, mine, other, k) {
  const cell = add(tr, 'td');
  const step = mine.rollout.steps[k], beside = other.rollout.steps[k];
  if (!step) { add(cell, 'p', 'ended', 'quiet'); return; }
  const {g, i, s, p, r} = mine.at;
  link(cell, {g, i, s, p, r, t: k, side: null}, 'step ' + k);
  drawAction(cell, step.action, beside && beside.action !== step.action ? beside.action : null);
  if (step.observation) addText(cell, 'div', step.observation, 'said');
  const facts = 'good' in step ? ['the environment: ' + (step.good ? 'good' : 'bad')] : [];
  if ('mean_vote' in step) facts.push('mean vote ' + signed(step.mean_vote));
  add(cell, 'div', [...facts, 'R ' + signed(step.reward)].join('; '), 'quiet');
}

// An action; of one with lines, such as a program, those before the first that differs are pale.
function drawAction(cell, action, other) {
  const same = other === null ? 0 : linesShared(action, other);
  const box = add(cell, 'pre', null, 'action');
  const lines = action.split('\n');
  if (same) add(box, 'span', lines.slice(0, same).join('\n') + '\n', 'quiet');
  addText(box, 'span', lines.slice(same).join('\n'));
}
