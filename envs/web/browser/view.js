// What the page shows: `rla.view` lists its visible texts and elements, in reading order. An element that can be acted
// on keeps its number for the whole episode. Sizes are bounded here, so that a huge page never reaches the program.
(() => {
  const MOST_NODES = 20000;
  const HIDDEN = new Set(['query', 'reward-display', 'sync-task-cover', 'click-canvas']);
  const FIELDS = new Set(['text', 'password', 'search', 'email', 'tel', 'number', 'date', 'time', 'url']);
  const TAGS = { a: 'link', button: 'button', select: 'list', option: 'option', textarea: 'textarea' };
  const ROLES = new Set(['tab', 'menuitem', 'button', 'link', 'option', 'slider', 'dialog', 'treeitem']);
  let numbers = new WeakMap(), byNumber = new Map(), budget = 0;

  const clean = (text, longest) => String(text || '').slice(0, 20 * longest).replace(/\s+/g, ' ').trim().slice(0, longest);
  const own = (element) => [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join(' ');
  const words = (text) => String(text || '').replace(/([a-z])[-_]+(?=[a-z0-9])/gi, '$1 ');

  const role = (element) => {
    const tag = element.tagName.toLowerCase();
    if (tag === 'input') {
      if (FIELDS.has(element.type)) return 'textbox';
      return ['checkbox', 'radio'].includes(element.type) ? element.type : element.type === 'range' ? 'slider' : 'button';
    }
    const declared = element.getAttribute('role');
    return TAGS[tag] || (ROLES.has(declared) ? declared : element instanceof SVGElement ? tag : 'item');
  };
  const acts = (element, style) => {
    if (TAGS[element.tagName.toLowerCase()] || element.tagName === 'INPUT' || element.onclick || rla.hears(element)) return true;
    if (ROLES.has(element.getAttribute('role'))) return true;
    return style.cursor === 'pointer' && getComputedStyle(element.parentElement).cursor !== 'pointer';
  };
  // A list or a dialog listens for its parts: it is nothing to click on itself.
  const carries = (element) => /^(UL|OL|FORM|TABLE|svg)$/.test(element.tagName) || /(^| )ui-(dialog|resizable-handle)( |$)/.test(element.getAttribute('class') || '');
  const beside = (node) => {
    for (let other = node.previousSibling; other; other = other.previousSibling) {
      if (other.nodeType === 3 && other.data.trim()) return other.data.length > 40 ? '' : other.data;
      if (other.nodeType === 1) return /^(INPUT|BR|BUTTON|SELECT|TEXTAREA)$/.test(other.tagName) ? '' : other.textContent;
    }
    const next = node.nextElementSibling;
    return next && /^(DIV|SPAN|B)$/.test(next.tagName) && !next.querySelector('input, button') ? next.textContent.slice(0, 40) : '';
  };
  const icon = (element) => {
    const classes = [...element.classList].filter((name) => !/^(ui-|bold|clickable|active)/.test(name));
    return words((/^ui-id/.test(element.id) ? '' : element.id) || classes[0] || element.getAttribute('fill') || '');
  };
  const label = (element) => {
    const given = element.getAttribute('aria-label') || element.placeholder || element.title || element.getAttribute('alt');
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) {
      const named = element.labels && element.labels[0] && element.labels[0].textContent.trim();
      const shown = role(element) === 'button' ? element.value : '';
      return named || shown || given || beside(element).trim() || words(element.name || element.id) || icon(element);
    }
    const text = element.innerText === undefined ? element.textContent : element.innerText;
    return text.trim() || given || icon(element);
  };
  const state = (element) => {
    if (element.tagName === 'OPTION') return element.selected ? 'selected' : '';
    if (element.type === 'checkbox' || element.type === 'radio') return element.checked ? 'checked' : '';
    if (['selected', 'active', 'clicked'].some((name) => element.classList.contains(name))) return 'selected';
    const tab = element.closest('[role="tab"]');
    if (tab && ['aria-selected', 'aria-expanded'].some((name) => tab.getAttribute(name) === 'true')) return 'open';
    return element === document.activeElement && element !== document.body ? 'focused' : '';
  };
  const number = (element) => {
    if (!numbers.has(element)) { numbers.set(element, byNumber.size + 1); byNumber.set(byNumber.size + 1, element); }
    return numbers.get(element);
  };
  const item = (element, name, limits) => ({
    number: number(element), role: role(element), name: clean(name, limits.longest), state: state(element),
    value: 'value' in element && ['textbox', 'textarea'].includes(role(element)) ? clean(element.value, limits.longest) : '',
  });

  const put = (items, made, limits) => { if (items.length < limits.most) items.push(made); else limits.more++; };
  const say = (element, items, limits) => {
    const text = clean(own(element), limits.longest);
    if (text) put(items, { number: 0, role: '', name: text, state: '', value: '' }, limits);
  };
  const inside = (element, items, limits) => {
    for (const child of element.children) walk(child, items, limits);
  };
  const walk = (element, items, limits) => {
    if (HIDDEN.has(element.id) || ++budget > MOST_NODES || /^(SCRIPT|STYLE)$/.test(element.tagName)) return;
    const style = getComputedStyle(element), option = element.tagName === 'OPTION';
    if (style.display === 'none' && !option) return;
    const box = element.getBoundingClientRect();
    // An icon whose picture is not loaded yet has no size.
    const shown = option || rla.hears(element) || (box.width > 0 && box.height > 0);
    if (!shown || style.visibility === 'hidden' || (element.tagName === 'LABEL' && (element.control || element.querySelector('input')))) {
      inside(element, items, limits);
      return;
    }
    const active = acts(element, style) && !carries(element);
    if (active && element.tagName !== 'LI') number(element);
    const parts = [], room = { most: limits.most, longest: limits.longest, more: 0 };
    inside(element, parts, room);
    limits.more += room.more;
    const whole = !parts.some((part) => part.number > 0);
    if (active && (whole || element.tagName !== 'LI')) {
      const name = element.tagName === 'SELECT' ? words(element.id) : whole ? label(element) : own(element).trim() || texts(parts) || icon(element);
      put(items, item(element, name, limits), limits);
      parts.filter((part) => part.number > 0).forEach((part) => put(items, part, limits));
    } else {
      say(element, items, limits);
      parts.forEach((part) => put(items, part, limits));
    }
  };
  const texts = (parts) => parts.filter((part) => part.number === 0).map((part) => part.name).join(' ');
  // A field without a label is named by the text before it.
  const named = (items) => items.forEach((made, index) => {
    const before = items[index - 1], after = items[index + 1];
    if (made.name === '' && made.role === 'textbox') made.name = [before, after].filter((i) => i && i.number === 0).map((i) => i.name)[0] || '';
  });

  rla.element = (wanted) => byNumber.get(wanted);
  rla.numbered = () => byNumber;
  // The number of an element, or of the nearest one around it that has one; 0 for none.
  rla.numberOf = (element) => {
    for (let e = element; e; e = e.parentElement) if (numbers.has(e)) return numbers.get(e);
    return 0;
  };
  rla.forget = () => { numbers = new WeakMap(); byNumber = new Map(); };
  rla.view = (most, longest) => {
    const items = [], limits = { most, longest, more: 0 };
    budget = 0;
    inside(document.body, items, limits);
    named(items);
    return { items, more: limits.more + (budget > MOST_NODES ? 1 : 0) };
  };
})();
