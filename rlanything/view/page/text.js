'use strict';
// Everything that a model or an environment wrote passes `visible` and becomes a text node, never HTML.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

function symbol(character) {
  const code = character.codePointAt(0);
  if (character === '\n' || character === '\t') return character;
  if (code < 32) return String.fromCodePoint(0x2400 + code);
  return code === 127 ? '\u2421' : '\\u{' + code.toString(16) + '}';
}

function visible(text) { return String(text).replace(HIDDEN, symbol); }

function add(parent, tag, text, cls) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = visible(text);
  if (cls) node.className = cls;
  parent.append(node);
  return node;
}

// A text in which the words of the search are marked.
function addText(parent, tag, text, cls) {
  const node = add(parent, tag, null, cls);
  const shown = visible(text);
  let done = 0;
  for (const found of shown.matchAll(WORD)) {
    if (!state.words.some(word => begins(found[0].toLowerCase(), word))) continue;
    node.append(shown.slice(done, found.index));
    add(node, 'mark', found[0]);
    done = found.index + found[0].length;
  }
  node.append(shown.slice(done));
  return node;
}

function signed(value, digits = 3) {
  if (value === null || value === undefined) return '–';
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? '−' : '+') + text;
}

function share(value) { return value === null ? '–' : value.toFixed(3); }

function link(parent, change, text, cls) {
  const node = add(parent, 'a', text, cls);
  node.href = hashOf(change);
  return node;
}

// A fold whose content is made when it is opened first.
function addFold(parent, title, fill, cls, open = false) {
  const fold = add(parent, 'details', null, cls);
  add(fold, 'summary', title);
  const make = () => { if (fold.open && fold.childElementCount === 1) fill(fold); };
  fold.addEventListener('toggle', make);
  fold.open = open;
  make();
  return fold;
}

function addTable(parent, names, numbers) {
  const box = add(parent, 'div', null, 'wide');
  box.tabIndex = 0;   // so that the keyboard can scroll it
  const table = add(box, 'table');
  const head = add(add(table, 'thead'), 'tr');
  names.forEach((name, k) => add(head, 'th', name, numbers.includes(k) ? 'n' : '').scope = 'col');
  return add(table, 'tbody');
}
