'use strict';
// Two rollouts side by side: of one group, of a task in two iterations, or of a task in two runs.
const DIGITS_OF_ID = 16;

// What to compare with: the best and worst of the group, and a list of the same task and slot elsewhere.
async function drawChoice(place, index, group) {
  const line = add(place, 'p', null, 'choice');
  const pair = bestAndWorst(group);
  if (pair) link(line, {r: pair[0].rollout, t: '', side: placeBeside(group, pair[1].rollout)}, 'Best and worst side by side');
  const both = add(line, 'span');
  add(both, 'label', 'Compare with').htmlFor = 'beside';
  both.append(' ');
  const box = add(both, 'select');
  box.id = 'beside';
  add(box, 'option', 'nothing').value = '';
  box.addEventListener('change', () => goForth({side: sideOf(box.value + '.' + box.selectedOptions[0].dataset.rollout, index)}));
  for (let g = 0; g < index.runs.length; g++) drawOptions(box, await part('index', g), g, group);
  chooseBeside();
}

function chooseBeside() {
  const box = document.getElementById('beside');
  if (box) box.value = state.side ? [state.side.g, state.side.i, state.side.s, state.side.p].join('.') : '';
}

function placeBeside(group, rollout) { return {g: state.g, i: state.i, s: group.slot, p: Number(group.proposal), r: rollout}; }

function drawOptions(box, other, g, group) {
  const {iteration, slot, proposal, accuracy, first} = other.groups;
  const into = add(box, 'optgroup');
  into.label = visible(other.run);
  for (const [k, same] of relatives(other, group.task.task_id.slice(0, DIGITS_OF_ID), group.slot)) {
    const here = g === state.g && iteration[k] === state.i && slot[k] === group.slot && proposal[k] === Number(group.proposal);
    const near = rowOf(other, {iteration: iteration[k], slot: slot[k], rewrite: proposal[k], rollout: state.r});
    const name = 'iteration ' + iteration[k] + ', slot ' + slot[k] + (proposal[k] ? ', rewrite' : '') + ', accuracy ' + share(accuracy[k]);
    const told = here ? ' (this group)' : same ? ', the same task' : ', another task of the slot';
    const option = add(into, 'option', name + told);
    option.value = [g, iteration[k], slot[k], proposal[k]].join('.');
    option.dataset.rollout = here ? otherOf(group) : other.rows.rollout[near < 0 ? first[k] : near];
  }
}

function otherOf(group) { return (group.rollouts.find(one => one.rollout !== state.r) || group.rollouts[0]).rollout; }

// The rollout beside the one that is shown, with its group and run.
async function findBeside() {
  const {g, i, s, p, r} = state.side;
  const other = await part('index', g);
  if (rowOf(other, {iteration: i, slot: s, rewrite: p, rollout: r}) < 0) throw new Error('nothing to compare with: ' + other.run + ' has no rollout ' + r + ' of slot ' + s + ' in iteration ' + i + (p ? ' as a rewrite' : ''));
  const group = (await part('iterations/' + i, g)).find(one => one.slot === s && Number(one.proposal) === p);
  return {index: other, at: state.side, group, rollout: group.rollouts.find(one => one.rollout === r)};
}

function drawBeside(place, left, right) {
  place.replaceChildren();
  add(place, 'h2', 'Side by side');
  const line = add(place, 'p');
  link(line, {side: null}, 'close');
  line.append(' ');
  link(line, {g: right.at.g, i: right.at.i, s: right.at.s, p: right.at.p, r: right.at.r, t: '', side: left.at}, 'swap');
  add(place, 'p', partingWords(left.rollout, right.rollout), 'told');
  drawFacts(place, left, right);
  addFold(place, 'Every rollout on the right', fold => drawOthers(fold, left, right), 'others', left.group !== right.group);
  drawPairs(place, left, right);
}

// [name, value, digits of a number that is compared or null], of the group and of the rollout.
function factsOf({index, at, group, rollout}) {
  const counted = group.rollouts.filter(one => !crashed(one));
  const [sign, , name] = outcomeOf(rollout.outcome, rollout.status);
  return {
    group: [
      ['run', index.run, null], ['iteration', at.i, null], ['slot', at.s + (at.p ? ', rewrite' : ''), null],
      ['task', group.task.task_id.slice(0, 12), null], ['accuracy', group.accuracy, 3],
      ['successes', counted.filter(one => one.outcome > 0).length + ' of ' + counted.length, null],
      ['mean length', meanOf(counted.map(one => one.steps.length)), 1], ['mean R of all', meanOf(counted.map(one => one.reward)), 3],
    ],
    rollout: [['rollout', rollout.rollout, null], ['outcome', sign + ' ' + name, null], ['steps', rollout.steps.length, 0], ['mean R', rollout.reward, 3]],
  };
}

// Of two rollouts of one group only what is their own.
function drawFacts(place, left, right) {
  const body = addTable(place, ['', 'left', 'right', 'right − left'], [1, 2, 3]);
  body.parentElement.id = 'facts';
  const [mine, theirs] = [factsOf(left), factsOf(right)];
  for (const part of left.group === right.group ? ['rollout'] : ['group', 'rollout']) {
    mine[part].forEach(([name, value, digits], k) => drawFact(body, name, value, theirs[part][k][1], digits));
  }
  if (left.group.task.instruction === right.group.task.instruction) return;
  for (const [name, {group}] of [['left', left], ['right', right]]) addText(place, 'p', name + ': ' + group.task.instruction, 'instruction');
}

function drawFact(body, name, left, right, digits) {
  const tr = add(body, 'tr');
  add(tr, 'th', name).scope = 'row';
  const number = value => value === null ? '–' : value.toFixed(digits).replace('-', '−');
  for (const value of [left, right]) add(tr, 'td', digits === null ? value : number(value), 'n');
  const differs = digits === null ? left === right ? '' : 'differs' : left === null || right === null ? '' : signed(right - left, digits);
  add(tr, 'td', differs, 'n');
}

// Every rollout on the right, with the step at which it parts from the one on the left.
function drawOthers(place, left, right) {
  const body = addTable(place, ['right', 'outcome', 'steps', 'mean R', 'parts from the left at'], [2, 3, 4]);
  body.parentElement.id = 'others';
  for (const rollout of right.group.rollouts) {
    const tr = add(body, 'tr');
    if (rollout === right.rollout) tr.setAttribute('aria-current', 'true');
    const [sign, cls, name] = outcomeOf(rollout.outcome, rollout.status);
    const at = partingOf(left.rollout, rollout);
    link(add(tr, 'td'), {side: {...right.at, r: rollout.rollout}}, rollout.rollout);
    add(tr, 'td', sign + ' ' + name, cls);
    add(tr, 'td', rollout.steps.length, 'n');
    add(tr, 'td', signed(rollout.reward), 'n');
    add(tr, 'td', rollout === left.rollout ? 'itself' : at === null ? 'never' : 'step ' + at, 'n');
  }
}
