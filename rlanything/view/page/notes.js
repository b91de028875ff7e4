'use strict';
// Notes of the reader on rollouts and steps. They stay in this browser, by the run; the page itself may have some built in.
// rlanything/view/notes.py has the same format and the same limits.
const NOTES = {format: 'rlanything view notes 1', most: 5000, longest: 10000, bytes: 16 << 20};
const kept = new Map();       // by the run's identity: notes by their place
const unstored = new Map();   // the same of notes that the browser did not store; null: removed ones

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

function unstoredOf(index) {
  if (!unstored.has(index.identity)) unstored.set(index.identity, new Map());
  return unstored.get(index.identity);
}

// The reader's own notes, read again: another tab may have changed them. Those that the browser refused stay as they are.
function readNotes(index) {
  const found = storedNotes(index);
  for (const [spot, note] of unstoredOf(index)) if (note) found.set(spot, note); else found.delete(spot);
  kept.set(index.identity, found);
  return found;
}

// What the browser has. A text that cannot be read is put aside before anything is written over it.
function storedNotes(index) {
  const found = new Map();
  let text = null;
  try { text = localStorage.getItem(storedAs(index)); } catch { return found; }   // forbidden: `storeNotes` says so
  try {
    for (const note of text ? checkedNotes(text, index) : []) found.set(spotOf(note), note);
  } catch (error) {
    found.clear();
    tell(new Error('notes of this browser cannot be read: ' + error.message));
    try { localStorage.setItem(storedAs(index) + ' (unread)', text); } catch (full) { found.refused = full; }
  }
  return found;
}

function ownNotes(index) { return kept.get(index.identity) || readNotes(index); }

function notesOf(index) { return [...index.built_notes, ...ownNotes(index).values()]; }

function packed(index) {
  return JSON.stringify({format: NOTES.format, run: index.run, identity: index.identity, notes: [...ownNotes(index).values()]}, null, 1);
}

// Change notes by their place, null removes one. What the browser does not store stays in this tab, and the page says so.
function changeNotes(index, changes) {
  const waiting = unstoredOf(index);
  for (const [spot, note] of changes) waiting.set(spot, note);
  const {refused} = readNotes(index);
  try {
    if (refused) throw refused;
    localStorage.setItem(storedAs(index), packed(index));
    waiting.clear();
    tellUnstored(null);
  } catch (error) { tellUnstored(error); }
}

// An empty text removes the note.
function writeNote(index, place, text) {
  const all = readNotes(index), spot = spotOf(place);
  if (text.trim() && all.size >= NOTES.most && !all.has(spot)) throw new Error('at most ' + NOTES.most + ' notes');
  changeNotes(index, [[spot, text.trim() ? {...place, text: text.slice(0, NOTES.longest)} : null]]);
}

// All or nothing: every note is checked before the first is taken. Where both have a note on a place, both texts stay.
function importNotes(index, text) {
  const mine = readNotes(index), all = new Map(mine);
  for (const note of checkedNotes(text, index)) {
    const old = all.get(spotOf(note));
    const both = !old || old.text.includes(note.text) ? old?.text ?? note.text : old.text + '\n\n' + note.text;
    if (both.length > NOTES.longest) throw new Error('a note and the imported one are longer together than ' + NOTES.longest + ' characters');
    all.set(spotOf(note), {...note, text: both});
  }
  if (all.size > NOTES.most) throw new Error('more than ' + NOTES.most + ' notes together');
  changeNotes(index, [...all].filter(([spot, note]) => mine.get(spot)?.text !== note.text));
}

function inMarkdown(index) {
  const parts = notesOf(index).map(note => '## ' + placeWords(note) + '\n\n' + note.text.split('\n').map(line => '> ' + line).join('\n') + '\n');
  return ['# Notes on ' + index.run + '\n', ...parts].join('\n');
}
