'use strict';
// What a reader chooses and types above the list, and the keys.
function fillControls() {
  if (document.activeElement.id !== 'words') document.getElementById('words').value = state.q;
  document.getElementById('scope').value = state.scope;
  if (document.activeElement.id !== 'least') document.getElementById('least').value = state.least;
  for (const box of document.querySelectorAll('#filters input')) box.checked = state.filters.includes(box.value);
}

function controlled(event) {
  if (event.target.id === 'which') return;
  const filters = [...document.querySelectorAll('#filters input:checked')].map(box => box.value);
  const least = document.getElementById('least').value;
  go({q: document.getElementById('words').value, filters, least, scope: document.getElementById('scope').value});
}

// Once.
function makeControls() {
  const {runs} = index;
  const which = document.getElementById('which');
  document.getElementById('run-shown').hidden = runs.length < 2;
  runs.forEach((name, g) => { add(which, 'option', name).value = g; });
  which.addEventListener('change', () => goForth({g: Number(which.value), i: null, s: null, p: 0, r: 0, t: '', scope: '', side: null}));
  for (const [name, [said]] of [...Object.entries(index.filters), [NOTED, ['with notes']]]) {
    const label = add(document.getElementById('filters'), 'label');
    Object.assign(add(label, 'input'), {type: 'checkbox', value: name});
    label.append(' ' + said);
  }
  document.getElementById('controls').addEventListener('input', controlled);
  document.getElementById('controls').addEventListener('submit', event => event.preventDefault());
  document.getElementById('help').addEventListener('click', () => document.getElementById('keys').showModal());
}

// For each run.
function drawControls() {
  document.getElementById('run').textContent = visible(index.run);
  const kind = index.writes === 'votes' ? 'votes on steps' : 'unit tests';
  document.getElementById('about').textContent = visible(index.state + '; ' + kind + '; λ = ' + index.lambda + '; rlanything ' + index.version);
  document.getElementById('which').value = state.g;
  const scope = document.getElementById('scope'), meanings = document.getElementById('meanings');
  scope.replaceChildren(scope.firstElementChild);
  for (const number of new Set(index.groups.iteration)) add(scope, 'option', number).value = number;
  meanings.replaceChildren();
  for (const [name, [said, meaning]] of Object.entries({...index.filters, [NOTED]: ['with notes', 'somebody wrote a note on it or on a step of it']})) {
    document.querySelector('#filters input[value=' + name + ']').parentElement.title = meaning;
    add(meanings, 'dt', said);
    add(meanings, 'dd', meaning);
  }
  for (const note of index.notes) add(meanings, 'dd', 'note: ' + note);
}

const KEYS = {
  j: () => go({t: Math.min((state.t === '' ? -1 : state.t) + 1, document.querySelectorAll('.step').length - 1)}),
  k: () => go({t: Math.max((state.t === '' ? 0 : state.t) - 1, 0)}),
  n: () => goRow(neighbour(row, 1, false)),
  p: () => goRow(neighbour(row, -1, false)),
  N: () => goRow(neighbour(row, 1, true)),
  P: () => goRow(neighbour(row, -1, true)),
  t: () => { const fold = document.querySelector('.step.current .tokens'); if (fold) fold.open = !fold.open; },
  c: () => { const choice = document.querySelector('#task .choice a'); if (state.side) goForth({side: null}); else if (choice) choice.click(); },
  h: () => { const fold = document.getElementById('bars'); fold.open = !fold.open; if (fold.open) fold.scrollIntoView({block: 'nearest'}); },
  m: noteKey,
  '/': () => document.getElementById('words').select(),
  '?': () => document.getElementById('keys').showModal(),
};

function goRow(next) { if (next !== undefined) location.hash = hashOf(placeOf(index, groupAt(next), next)); }

function pressed(event) {
  const typing = event.target.matches('input, select, textarea');
  if (event.key === 'Escape' && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById('keys').open) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}
