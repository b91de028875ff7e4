'use strict';
// The task: its rollouts side by side, its programs and tests, and the history of its slot.
function drawTask(place, index, group, row) {
  place.replaceChildren();
  const {task, rewrite} = group;
  add(place, 'h2', 'Iteration ' + state.i + ', slot ' + group.slot + (group.proposal ? ', rewrite' : ''));
  addText(place, 'p', task.instruction || '(its task is in no buffer)', 'instruction');
  const facts = ['accuracy ' + share(group.accuracy), 'task ' + task.task_id.slice(0, 12)];
  if (rewrite) facts.push('a rewrite' + (rewrite.direction ? ', to be ' + rewrite.direction : '') + ': ' + decided(rewrite));
  add(place, 'p', facts.join('; '), 'quiet');
  drawRollouts(place, index, group, row);
  drawChoice(place, index, group).catch(tell);
  if (group.tests) drawTests(place, group);
  const past = add(place, 'div', null, 'history');
  drawHistory(past, index, group).catch(tell);
  if (task.payload) addFold(place, 'What the environment got', fold => add(fold, 'pre', JSON.stringify(task.payload, null, 1)));
}

function decided(event) { return (event.decision || event.kind) + (event.reason ? ': ' + event.reason : ''); }

function drawRollouts(place, index, group, row) {
  const names = ['rollout', 'outcome', 'status', 'steps', 'mean R', 'mean adv.', 'trains the policy'];
  const body = addTable(place, names, [3, 4, 5]);
  body.parentElement.id = 'group';
  const lengths = group.rollouts.map(rollout => rollout.steps.length);
  for (const rollout of group.rollouts) {
    const tr = add(body, 'tr');
    if (rollout.rollout === index.rows.rollout[row]) tr.setAttribute('aria-current', 'true');
    const [sign, cls, name] = outcomeOf(rollout.outcome, rollout.status);
    link(add(tr, 'td'), {r: rollout.rollout, t: ''}, rollout.rollout);
    add(tr, 'td', sign + ' ' + name, cls);
    add(tr, 'td', rollout.status);
    add(tr, 'td', rollout.steps.length, 'n').classList.toggle('least', rollout.steps.length === Math.min(...lengths));
    add(tr, 'td', signed(rollout.reward), 'n');
    add(tr, 'td', signed(rollout.advantage), 'n');
    add(tr, 'td', rollout.trains_policy ? 'yes' : 'no: ' + rollout.why_not);
  }
}

const CELLS = new Map([[true, ['+', 'solved', 'passes']], [false, ['−', 'failed', 'fails']], [null, ['?', 'crashed', 'was not run']]]);

function drawTests(place, group) {
  const {programs, written, dataset_pass_rates: own} = group.tests;
  add(place, 'h3', 'Programs and tests');
  add(place, 'p', 'Each row is a program, each column a test: + passes, − fails, ? could not be run. t: the tests of the task; w: written tests.', 'quiet');
  const names = ['program', 'right', 'R', ...own.map((_, k) => 't' + k), ...written.map((_, k) => 'w' + k)];
  const body = addTable(place, names, [2]);
  body.parentElement.id = 'matrix';
  for (const program of programs) {
    const tr = add(body, 'tr');
    link(add(tr, 'td'), {r: program.rollout, t: ''}, program.rollout);
    add(tr, 'td', {true: 'right', false: 'wrong'}[program.right] || 'open');
    add(tr, 'td', signed(program.reward), 'n');
    for (const cell of [...program.dataset, ...program.written]) {
      const [sign, cls, name] = CELLS.get(cell);
      add(tr, 'td', sign, cls + ' cell').title = name;
    }
  }
  addFold(place, count(written.length, 'written test'), fold => written.forEach((test, k) => drawWritten(fold, test, k)));
}

function drawWritten(place, test, k) {
  const right = !test.text ? 'the reply holds no test' : {true: 'right', false: 'wrong'}[test.right] || 'unknown whether right';
  const trains = test.trains ? 'advantage ' + signed(test.advantage) : 'does not train';
  const title = 'w' + k + ', written test: ' + right + ', reward ' + signed(test.reward) + ', ' + trains;
  const cls = test.right === true ? 'vote good' : test.right === false ? 'vote bad' : 'vote invalid';
  addFold(place, title, fold => addText(fold, 'pre', test.text || test.reply || ''), cls);
}

async function drawHistory(place, index, group) {
  const past = (await part('history/' + group.slot % index.history))[group.slot];
  if (!past) return;
  const {versions, events} = past;
  const told = count(versions.length, 'version') + ', ' + count(events.length, 'event');
  addFold(place, 'History of slot ' + group.slot + ': ' + told, fold => {
    const list = add(fold, 'ol');
    for (const version of versions) drawVersion(list, version, group.task.task_id);
    for (const event of events) drawEvent(fold, event);
  }, '', versions.length > 1);
}

function count(number, name) { return number + ' ' + name + (number === 1 ? '' : 's'); }

function drawVersion(list, version, shown) {
  const item = add(list, 'li');
  const came = version.direction === null ? 'the first task'
    : version.direction + ' from iteration ' + version.iteration + ', accuracy ' + share(version.accuracy_before) + ' → ' + share(version.accuracy);
  add(item, 'div', 'v' + version.number + ', ' + came + (version.task.task_id === shown ? ' (shown here)' : ''), 'quiet');
  addText(item, 'div', version.task.instruction, 'instruction');
}

function drawEvent(place, event) {
  const rates = 'accuracy of the task ' + share(event.parent_accuracy) + (event.accuracy === null ? '' : ', of the rewrite ' + share(event.accuracy));
  const title = 'iteration ' + event.iteration + ', ' + event.direction + ', ' + decided(event) + '; ' + rates;
  addFold(place, title, fold => {
    if (event.task) addText(fold, 'p', event.task.instruction, 'instruction');
    for (const [name, text] of [['what the adapter wrote', event.reply], ['what it was told of the rollouts', event.critic]]) {
      if (text) { add(fold, 'div', name, 'quiet'); addText(fold, 'pre', text); }
    }
  }, event.kind === 'accepted' ? 'vote good' : event.kind === 'proposed' ? 'vote' : 'vote bad');
}
