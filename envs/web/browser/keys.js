// Keys that go down and come up on what has the focus, and what a browser then does. Events that are made in a page do
// none of this by themselves. As in a browser, nothing is done where the page has prevented it.
(() => {
  const NAMED = {   // by the name in an action: what events call the key, and its old number
    enter: ['Enter', 13], tab: ['Tab', 9], backspace: ['Backspace', 8], escape: ['Escape', 27], space: [' ', 32],
    delete: ['Delete', 46], up: ['ArrowUp', 38], down: ['ArrowDown', 40], left: ['ArrowLeft', 37], right: ['ArrowRight', 39],
    home: ['Home', 36], end: ['End', 35], pageup: ['PageUp', 33], pagedown: ['PageDown', 34],
    ctrl: ['Control', 17], shift: ['Shift', 16], alt: ['Alt', 18],
  };
  const FLAGS = { ctrl: 'ctrlKey', shift: 'shiftKey', alt: 'altKey' };
  const BELOW = '`1234567890-=[]\\;\',./', ABOVE = '~!@#$%^&*()_+{}|:"<>?';   // the signs of a key, without and with shift
  const TEXTS = /^(text|password|search|email|tel|url|number)$/, BUTTONS = /^(button|submit|reset|image)$/;
  const STOPS = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]';
  let held, clipboard, armed, sought, before;
  const reset = () => { held = new Set(); clipboard = ''; armed = null; sought = { at: -1, text: '' }; };
  reset();
  // What the page knows of the field that has the focus: enter tells it of a change.
  ['focusin', 'change'].forEach((type) => document.addEventListener(type, (event) => { before = event.target.value; }, true));

  const active = () => document.activeElement || document.body;
  const isText = (element) => element.tagName === 'TEXTAREA' || (element.tagName === 'INPUT' && TEXTS.test(element.type));
  const editable = (element) => element.isContentEditable || (isText(element) && !element.readOnly && !element.disabled);
  const isButton = (element) => /^(BUTTON|SUMMARY)$/.test(element.tagName) || (element.tagName === 'INPUT' && BUTTONS.test(element.type));
  const ticks = (element) => element.tagName === 'INPUT' && /^(checkbox|radio)$/.test(element.type);

  const flags = () => Object.fromEntries(Object.entries(FLAGS).map(([name, flag]) => [flag, held.has(name)]));
  const sign = (name) => !held.has('shift') ? name : BELOW.includes(name) ? ABOVE[BELOW.indexOf(name)] : name.toUpperCase();
  const event = (element, type, name) => {
    const [key, old] = NAMED[name] || [sign(name), name.toUpperCase().charCodeAt(0)];
    const printed = type === 'keypress' ? (NAMED[name] ? old : key.charCodeAt(0)) : 0;
    return element.dispatchEvent(new KeyboardEvent(type, {
      key, keyCode: printed || old, which: printed || old, charCode: printed, bubbles: true, cancelable: true, ...flags(),
    }));
  };
  const tell = (element, ...types) => types.forEach((type) => element.dispatchEvent(new Event(type, { bubbles: true })));

  // The browser's own editing: at the caret, in place of what is selected, and no more than fits.
  const edit = (element, command, text) => { if (editable(element)) document.execCommand(command, false, text); };
  const move = (where, unit) => getSelection().modify(held.has('shift') ? 'extend' : 'move', where, unit);
  const caret = (field) => {   // to the end; fields of numbers and of dates have none
    if (isText(field) && field.selectionStart !== null) field.setSelectionRange(field.value.length, field.value.length);
  };
  const selected = (element) => isText(element) && element.selectionStart !== null
    ? element.value.slice(element.selectionStart, element.selectionEnd) : String(getSelection());
  const shortcut = (element, name) => {   // the clipboard is the episode's own
    if (name === 'a') document.execCommand('selectAll');
    if ((name === 'c' || name === 'x') && element.type !== 'password') clipboard = selected(element) || clipboard;
    if (name === 'x') edit(element, 'delete');
    if (name === 'v' && clipboard) edit(element, 'insertText', clipboard);
  };

  const pick = (list, option) => {
    if (!option || option.selected) return;
    option.selected = true;
    tell(list, 'input', 'change');
  };
  const beside = (list, by) => {   // the next option that can be chosen
    let at = list.selectedIndex + by;
    while (list.options[at] && list.options[at].disabled) at += by;
    pick(list, list.options[at]);
  };
  const seek = (list, letter) => {   // letters that come at once are the beginning of one option
    const now = performance.now(), text = (now === sought.at ? sought.text : '') + letter.toLowerCase();
    sought = { at: now, text };
    const options = [...list.options], first = list.selectedIndex + (text.length === 1 ? 1 : 0);
    const found = options.map((_, k) => options[(Math.max(first, 0) + k) % options.length]);
    pick(list, found.find((option) => !option.disabled && option.text.trim().toLowerCase().startsWith(text)));
  };
  const others = (radio) => [...document.querySelectorAll('input[type=radio]')].filter((one) => one === radio
    || (one.name && one.name === radio.name && one.form === radio.form && !one.disabled));
  const arrow = (element, name) => {
    const by = name === 'up' || name === 'left' ? -1 : 1, upright = name === 'up' || name === 'down';
    if (element.tagName === 'SELECT') { if (!element.multiple) beside(element, by); }
    else if (element.type === 'radio') {
      const group = others(element), next = group[(group.indexOf(element) + by + group.length) % group.length];
      next.focus();
      if (!next.checked) next.click();
    } else if (element.type === 'range' || (element.type === 'number' && upright && editable(element))) {
      const value = element.value;
      element[(name === 'up' || name === 'right') ? 'stepUp' : 'stepDown']();
      if (element.value !== value) tell(element, 'input', 'change');
    } else if (editable(element)) move(by < 0 ? (upright ? 'backward' : 'left') : (upright ? 'forward' : 'right'), upright ? 'line' : 'character');
  };

  const stops = () => {
    const shown = [...document.querySelectorAll(STOPS)].filter((one) => (one.isContentEditable || one.tabIndex >= 0)
      && !one.matches(':disabled') && one.getClientRects().length && getComputedStyle(one).visibility === 'visible');
    const first = (radio) => { const group = others(radio); return group.find((one) => one.checked) || group[0]; };
    const found = shown.filter((one) => one.type !== 'radio' || first(one) === one);
    return found.sort((a, b) => (a.tabIndex > 0 ? a.tabIndex : Infinity) - (b.tabIndex > 0 ? b.tabIndex : Infinity) || 0);
  };
  const go = (by) => {   // after the last one comes the first
    const all = stops(), from = active(), here = all.indexOf(from);
    const after = all.findIndex((one) => from.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
    const next = here >= 0 ? here + by : after < 0 ? (by > 0 ? 0 : -1) : by > 0 ? after : after - 1;
    const to = all[(next + all.length) % all.length];
    if (!to) return;
    to.focus();
    if (isText(to)) to.select();
  };
  const submit = (field) => {
    if (isText(field) && field.value !== before) tell(field, 'change');
    if (!field.form) return;
    const parts = [...field.form.elements], button = parts.find((one) => one.type === 'submit');
    if (button) { if (!button.matches(':disabled')) button.click(); }
    else if (parts.filter(isText).length <= 1) field.form.requestSubmit();
  };
  const enter = (element) => {
    if (isButton(element) || element.matches('a[href]')) element.click();
    else if (element.tagName === 'INPUT') submit(element);
    else if (element.tagName === 'TEXTAREA') edit(element, 'insertText', '\n');
    else edit(element, held.has('shift') ? 'insertLineBreak' : 'insertParagraph');
  };
  const space = (element) => {
    if (isButton(element) || ticks(element)) armed = element;   // it is clicked when the key comes up
    else edit(element, 'insertText', ' ');
  };
  const EDGES = { home: 'backward', end: 'forward' };
  const ACTS = {
    enter, space, tab: () => go(held.has('shift') ? -1 : 1),
    backspace: (element) => edit(element, 'delete'), delete: (element) => edit(element, 'forwardDelete'),
  };
  const does = (name) => {
    const element = active();
    if (held.has('ctrl')) shortcut(element, name.toLowerCase());
    else if (held.has('alt') || FLAGS[name]) return;
    else if (ACTS[name]) ACTS[name](element);
    else if (EDGES[name]) { if (editable(element)) move(EDGES[name], 'lineboundary'); }
    else if (/^(up|down|left|right)$/.test(name)) arrow(element, name);
    else if (!NAMED[name]) { if (element.tagName === 'SELECT') seek(element, name); else edit(element, 'insertText', sign(name)); }
  };

  const prints = (name) => (!NAMED[name] || name === 'space' || name === 'enter') && !held.has('ctrl') && !held.has('alt');
  const down = (name) => {
    if (FLAGS[name]) held.add(name);
    const goes = event(active(), 'keydown', name) && (!prints(name) || event(active(), 'keypress', name));
    if (goes) does(name);
  };
  const up = (name) => {
    held.delete(name);
    const element = active(), goes = event(element, 'keyup', name);
    if (name !== 'space') return;
    if (goes && armed === element) element.click();
    armed = null;
  };
  const stroke = (name) => { down(name); up(name); };
  const KEYS = { '\n': 'enter', '\t': 'tab', ' ': 'space' };
  const write = (text) => {   // keys that are held do not change what is typed
    const kept = held;
    held = new Set();
    for (const letter of text) stroke(KEYS[letter] || letter);
    held = kept;
  };
  const chord = (names) => { names.forEach(down); [...names].reverse().forEach(up); };

  rla.keys = { reset, flags, event, caret, isText, stroke, chord, down, up, write };
})();
