'use strict';
// Where two rollouts part, and which two of a group to look at first. Nothing here draws.

// The first step whose action is not the same, or at which one has ended; null: the same actions to the end.
function partingOf(left, right) {
  const [a, b] = [left.steps, right.steps];
  const shared = Math.min(a.length, b.length);
  for (let k = 0; k < shared; k++) if (a[k].action !== b[k].action) return k;
  return a.length === b.length ? null : shared;
}

function partingWords(left, right) {
  const at = partingOf(left, right);
  if (at === null) return 'Both take the same actions to the end.';
  const same = at ? 'The first ' + (at === 1 ? 'action is' : at + ' actions are') + ' the same. ' : '';
  const ended = [left, right].findIndex(one => one.steps.length <= at);
  if (ended >= 0) return same + 'Then the ' + ['left', 'right'][ended] + ' one has ended, and the other goes on with step ' + at + '.';
  return same + 'They part at step ' + at + '.';
}

function crashed(rollout) { return BROKEN.includes(rollout.status); }

// The best and the worst rollout of a group by outcome, mean R and length; null where fewer than two can be compared.
function bestAndWorst(group) {
  const value = rollout => [rollout.outcome, rollout.reward ?? -Infinity, -rollout.steps.length, -rollout.rollout];
  const order = (a, b) => value(b).map((x, k) => x === value(a)[k] ? 0 : x - value(a)[k]).find(x => x) || 0;
  const sorted = group.rollouts.filter(rollout => !crashed(rollout)).sort(order);
  return sorted.length < 2 ? null : [sorted[0], sorted.at(-1)];
}

// Lines that two texts begin with.
function linesShared(a, b) {
  const [left, right] = [a.split('\n'), b.split('\n')];
  const at = left.findIndex((line, k) => line !== right[k]);
  return at < 0 ? left.length : at;
}

function meanOf(values) {
  const known = values.filter(value => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

// The groups of an index with the same task as another group or of the same slot: [group, whether it is the same task].
function relatives(index, taskId, slot) {
  const {slot: slots, task} = index.groups;
  const found = slots.map((one, g) => [g, index.task_ids[task[g]] === taskId]).filter(([g, same]) => same || slots[g] === slot);
  return found.sort(([a, x], [b, y]) => y - x || index.groups.iteration[a] - index.groups.iteration[b] || a - b);
}
