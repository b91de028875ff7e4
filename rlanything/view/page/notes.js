'use strict';
// Notes of the reader on rollouts and steps. They stay in this browser, by the run; the page itself may have some built in.
// rlanything/view/notes.py has the same format and the same limits.
const NOTES = {format: 'rlanything view notes 1', most: 5000, longest: 10000, bytes: 16 << 20};
const kept = new Map();   // by the run's identity: notes by their place

function spotOf({iteration, slot, rewrite, rollout, step}) { return [iteration, slot, rewrite, rollout, step ?? ''].join('/'); }

// Notes from anywhere: of this form and size, or an error that says what is wrong.
function checkedNotes(text, index) {
  let found = null;
  try { found = JSON.parse(text); } catch { throw new Error('these notes are not JSON'); }
  if (!found || found.format !== NOTES.format || !Array.isArray(found.notes)) throw new Error('these are not notes that a page exported');
  if (found.identity !== index.identity) throw new Error('these are notes on another run: ' + String(found.run).slice(0, 80));
  if (found.notes.length > NOTES.most) throw new Error('more than ' + NOTES.most + ' notes');
  return found.notes.map(checkedNote);
}

function checkedNote(note, k) {
  const whole = value => Number.isInteger(value) && value >= 0 && value < 1e9;
  const {iteration, slot, rewrite, rollout, step, text} = note || {};
  const placed = [iteration, slot, rollout].every(whole) && [0, 1].includes(rewrite) && (step === null || whole(step));
  if (!placed) throw new Error('note ' + k + ' has no place: iteration, slot, rewrite, rollout, step');
  if (typeof text !== 'string' || !text || text.length > NOTES.longest) throw new Error('note ' + k + ' has no text of 1 to ' + NOTES.longest + ' characters');
  return {iteration, slot, rewrite, rollout, step, text};
}

function storedAs(index) { return 'rlanything view notes ' + index.identity; }

// The reader's own notes, read again: another tab may have changed them.
function readNotes(index) {
  const found = new Map();
  let text = null;
  try {
    text = localStorage.getItem(storedAs(index));
    for (const note of text ? checkedNotes(text, index) : []) found.set(spotOf(note), note);
  } catch (error) {
    if (text) localStorage.setItem(storedAs(index) + ' (unread)', text);
    tell(new Error('notes of this browser cannot be read: ' + error.message));
  }
  kept.set(index.identity, found);
  return found;
}

function ownNotes(index) { return kept.get(index.identity) || readNotes(index); }

function notesOf(index) { return [...index.built_notes, ...ownNotes(index).values()]; }

function packed(index) {
  return JSON.stringify({format: NOTES.format, run: index.run, identity: index.identity, notes: [...ownNotes(index).values()]}, null, 1);
}

function storeNotes(index) {
  try { localStorage.setItem(storedAs(index), packed(index)); } catch (error) {
    throw new Error('this browser does not keep the note (' + error.message + '); export the notes before you close the page');
  }
}

// An empty text removes the note.
function writeNote(index, place, text) {
  const all = readNotes(index);
  if (!text.trim()) all.delete(spotOf(place));
  else if (all.size >= NOTES.most && !all.has(spotOf(place))) throw new Error('at most ' + NOTES.most + ' notes');
  else all.set(spotOf(place), {...place, text: text.slice(0, NOTES.longest)});
  storeNotes(index);
}

// All or nothing. Where both have a note on a place, both texts stay.
function importNotes(index, text) {
  const all = new Map(readNotes(index));
  for (const note of checkedNotes(text, index)) {
    const mine = all.get(spotOf(note));
    const both = !mine || mine.text.includes(note.text) ? mine?.text ?? note.text : mine.text + '\n\n' + note.text;
    if (both.length > NOTES.longest) throw new Error('a note and the imported one are longer together than ' + NOTES.longest + ' characters');
    all.set(spotOf(note), {...note, text: both});
  }
  if (all.size > NOTES.most) throw new Error('more than ' + NOTES.most + ' notes together');
  kept.set(index.identity, all);
  storeNotes(index);
}

function inMarkdown(index) {
  const parts = notesOf(index).map(note => '## ' + placeWords(note) + '\n\n' + note.text.split('\n').map(line => '> ' + line).join('\n') + '\n');
  return ['# Notes on ' + index.run + '\n', ...parts].join('\n');
}
