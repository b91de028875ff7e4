'use strict';
// Notes as the page shows them: on rollouts and steps, and all in a list.
function placeWords({iteration, slot, rewrite, rollout, step}) {
  return 'Iteration ' + iteration + ', slot ' + slot + (rewrite ? ', rewrite' : '') + ', rollout ' + rollout + (step === null ? '' : ', step ' + step);
}

function drawNote(place, index, spot) {
  for (const note of index.built_notes) if (spotOf(note) === spotOf(spot)) {
    const box = add(place, 'p', null, 'note said');
    add(box, 'b', 'Note in this page: ');
    addText(box, 'span', note.text);
  }
  const mine = ownNotes(index).get(spotOf(spot));
  addFold(place, mine ? 'Your note' : 'Write a note', fold => {
    const box = add(fold, 'textarea');
    box.setAttribute('aria-label', 'Note on ' + placeWords(spot));
    Object.assign(box, {value: mine ? mine.text : '', maxLength: NOTES.longest, rows: 3});
    box.addEventListener('input', () => { tried(() => writeNote(index, spot, box.value)); countNotes(index); });
    box.addEventListener('change', () => notesChanged().catch(tell));
  }, 'note', Boolean(mine));
}

// Stays until the browser has stored every note.
function tellUnstored(error) {
  const place = document.getElementById('unstored');
  const many = [...unstored.values()].reduce((sum, notes) => sum + notes.size, 0);
  place.hidden = !many;
  if (many && error) {
    place.textContent = visible('This browser does not keep notes (' + error.message + '). ' + count(many, 'change')
      + ' of your notes would be lost with this tab: export them before you close it.');
  }
}

// The browser asks before it closes a tab with notes that are nowhere else.
function leaving(event) { if (!document.getElementById('unstored').hidden) event.preventDefault(); }

function tried(act) { try { act(); } catch (error) { tell(error); } }

// What depends on notes is drawn again, but not where the reader is writing.
async function notesChanged() {
  drawNotes(index);
  drawnList = null;
  await showList(turn);
}

function countNotes(index) {
  const many = notesOf(index).length;
  document.getElementById('noted').textContent = many ? ' (' + many + ')' : '';
}

function drawNotes(index) {
  countNotes(index);
  const list = document.getElementById('written');
  list.replaceChildren();
  if (!document.getElementById('notes').open) return;
  for (const note of notesOf(index)) {
    const item = add(list, 'li');
    const there = rowOf(index, note) >= 0;
    const at = {i: note.iteration, s: note.slot, p: note.rewrite, r: note.rollout, t: note.step ?? '', side: null};
    if (there) link(item, at, placeWords(note)); else add(item, 'span', placeWords(note) + ' (not in this page)');
    addText(item, 'div', note.text, 'said');
  }
}

function noteKey() {
  const fold = document.querySelector('.step.current > .note') || document.querySelector('#rollout > .note');
  if (!fold) return;
  fold.open = true;
  setTimeout(() => fold.querySelector('textarea').focus());   // the fold is filled when it has opened
}

function download(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function imported(box) {
  const [file] = box.files;
  if (!file) return;
  box.value = '';
  if (file.size > NOTES.bytes) throw new Error('notes of more than ' + (NOTES.bytes >> 20) + ' MB');
  importNotes(index, await file.text());
  drawnRow = null;
  await notesChanged();
  await show();
}

function makeNotes() {
  const named = () => index.run.replace(/[^\w-]+/g, '-').slice(0, 80) + '-notes';
  document.getElementById('notes').addEventListener('toggle', () => drawNotes(index));
  document.getElementById('as-json').addEventListener('click', () => download(named() + '.json', 'application/json', packed(index)));
  document.getElementById('as-markdown').addEventListener('click', () => download(named() + '.md', 'text/markdown', inMarkdown(index)));
  document.getElementById('import').addEventListener('change', event => imported(event.target).catch(tell));
  window.addEventListener('beforeunload', leaving);
  window.addEventListener('storage', event => {
    if (event.key !== storedAs(index)) return;
    readNotes(index);
    if (!document.activeElement.matches('textarea')) drawnRow = null;
    notesChanged().then(show).catch(tell);
  });
}
