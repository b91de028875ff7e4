'use strict';
// Full-text search in files of words (rlanything/view/words.py splits texts in the same way).
const WORD = /[\p{L}\p{N}]+/gu;
const LONGEST = 40;

function wordsOf(text) {
  return [...new Set(text.toLowerCase().match(WORD) || [])].map(word => [...word].slice(0, LONGEST).join(''));
}

function begins(known, word) { return known === word || (word.length > 1 && known.startsWith(word)); }

function fileOf(word, files) {
  let number = 0;
  for (const character of [...word].slice(0, 2)) number = (number * 31 + character.codePointAt(0)) % files;
  return number;
}

// For every row 1 where it or a note on it has a word that begins so, otherwise 0.
async function rowsWith(word, index) {
  const found = new Uint8Array(index.rows.rollout.length);
  for (const note of notesOf(index)) if (rowOf(index, note) >= 0 && wordsOf(note.text).some(known => begins(known, word))) found[rowOf(index, note)] = 1;
  const number = fileOf(word, index.files);
  if (!index.words.includes(number)) return found;
  for (const [known, distances] of Object.entries(await part('words/' + number))) {
    if (!begins(known, word)) continue;
    let row = 0;
    for (const distance of distances) found[row += distance] = 1;
  }
  return found;
}

// For every row whether it has all the words; null: no word is asked for.
async function search(words, index) {
  if (!words.length) return null;
  const [first, ...others] = await Promise.all(words.map(word => rowsWith(word, index)));
  for (const other of others) for (let row = 0; row < first.length; row++) first[row] &= other[row];
  return first;
}
