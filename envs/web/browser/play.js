// Episodes: `rla.play` starts one from its seed, or goes on from where the page is, and performs actions in order. Events
// are made in the page, so that one call does a whole step. Texts arrive as arguments and are never made into code.
(() => {
  const SETTLE = 1000;   // milliseconds of the page's time that pass after every action
  const FOREVER = 1e9;   // the page's own time limit; the step limit of the rollout is the only one
  let pointer = { x: 0, y: 0 }, played = null, failed = false, met = 0, started = 0;

  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  };
  const mouse = (element, type, at, more = {}) => element.dispatchEvent(new MouseEvent(type, {
    bubbles: true, cancelable: true, composed: true, view: window, clientX: at.x, clientY: at.y, ...rla.keys.flags(), ...more,
  }));
  const focus = (element) => {
    const field = element.closest('input, textarea, select, button, a[href], [tabindex], [contenteditable]');
    if (field) { field.focus(); rla.keys.caret(field); }
    else if (document.activeElement) document.activeElement.blur();
  };
  const hover = (element, at) => ['mouseover', 'mouseenter', 'mousemove'].forEach((type) => mouse(element, type, at));
  const click = (element, at, button = 0, detail = 1) => {
    hover(element, at);
    if (mouse(element, 'mousedown', at, { button, detail })) focus(element);
    mouse(element, 'mouseup', at, { button, detail });
    mouse(element, ['click', 'auxclick', 'contextmenu'][button], at, { button, detail });
  };
  const choose = (option) => {
    const list = option.closest('select');
    option.selected = list.multiple ? !option.selected : true;
    ['input', 'change'].forEach((type) => list.dispatchEvent(new Event(type, { bubbles: true })));
  };

  const setter = (element) => Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set;
  const put = (element, text) => {
    setter(element).call(element, text);
    element.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const converted = (element, text) => {
    const date = /^(\d\d)\/(\d\d)\/(\d{4})$/.exec(text), time = /^(\d{1,2}):(\d\d) ?([AP])M$/i.exec(text);
    if (element.type === 'date' && date) return `${date[3]}-${date[1]}-${date[2]}`;
    if (element.type !== 'time' || !time) return text;
    return String(Number(time[1]) % 12 + (/p/i.test(time[3]) ? 12 : 0)).padStart(2, '0') + `:${time[2]}`;
  };
  const dated = (field) => /^(date|time)$/.test(field.type);
  // The text takes the place of what a field holds, also where keys could not type it.
  const type = (field, text) => {
    field.focus();
    if (dated(field) || field.type === 'number') put(field, converted(field, text));
    else { put(field, ''); insert(field, text); }
    field.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const insert = (field, text) => {
    for (const letter of text) {
      ['keydown', 'keypress'].forEach((name) => rla.keys.event(field, name, letter));
      put(field, field.value + letter);
      rla.keys.event(field, 'keyup', letter);
    }
  };
  // Where the focus is; parts of a date have no keys here.
  const write = (element, text) => {
    if (dated(element)) put(element, converted(element, text));
    else rla.keys.write(text);
  };

  const under = (at) => document.elementFromPoint(at.x, at.y) || document.body;
  const KEYED = ['type', 'press', 'chord', 'hold', 'let_go'];
  const target = (action) => action.number ? rla.element(action.number)
    : KEYED.includes(action.kind) && action.x === null ? document.activeElement || document.body : under(pointer);
  const ACTS = {
    move: (element) => hover(element, pointer),
    click: (element, action) => {
      if (element.tagName === 'OPTION') return choose(element);
      for (let n = 1; n <= action.times; n++) click(element, pointer, action.button, n);
      if (action.times === 2) mouse(element, 'dblclick', pointer, { detail: 2 });
      return undefined;
    },
    down: (element, action) => mouse(element, 'mousedown', pointer, { button: action.button }),
    up: (element, action) => mouse(element, 'mouseup', pointer, { button: action.button }),
    drag: (element, action) => {
      mouse(under(pointer), 'mousedown', pointer);
      pointer = action.number ? middle(element) : { x: action.x, y: action.y };
      mouse(under(pointer), 'mousemove', pointer);
      mouse(under(pointer), 'mouseup', pointer);
      met = rla.numberOf(under(pointer));
    },
    scroll: (element, action) => {
      for (let e = element; e; e = e.parentElement) { e.scrollTop += action.dy; e.scrollLeft += action.dx; }
      element.dispatchEvent(new Event('scroll', { bubbles: true }));
    },
    type: (element, action) => {
      if (action.number) return type(element, action.text);
      if (action.x !== null) click(element, pointer);
      return write(document.activeElement || document.body, action.text);
    },
    press: (_element, action) => action.keys.forEach(rla.keys.stroke),
    chord: (_element, action) => rla.keys.chord(action.keys),
    hold: (_element, action) => action.keys.forEach(rla.keys.down),
    let_go: (_element, action) => action.keys.forEach(rla.keys.up),
    wait: () => {},
  };
  const perform = (action) => {
    if (action.number === 0 && action.x !== null && action.kind !== 'drag') pointer = { x: action.x, y: action.y };
    const element = target(action);
    failed = !element || !element.isConnected;
    met = failed ? 0 : rla.numberOf(element);
    if (failed) return;
    if (action.number && action.kind !== 'drag') pointer = middle(element);
    ACTS[action.kind](element, action);
    rla.advance(action.wait || SETTLE);
  };

  // A page empties its fields itself, or makes them anew; `focus-text-2` does neither.
  const empty = () => {
    for (const field of document.querySelectorAll('#area input[type=text], #area textarea')) {
      field.value = field.defaultValue;
      rla.keys.caret(field);
    }
  };
  const start = (seed) => {
    started++;
    if (document.activeElement) document.activeElement.blur();
    getSelection().removeAllRanges();
    rla.keys.reset();
    rla.rewind();
    rla.forget();
    pointer = { x: 0, y: 0 };
    failed = false;
    met = 0;
    played = null;
    core.EPISODE_MAX_TIME = FOREVER;
    empty();
    Math.seedrandom(seed);
    core.startEpisode();
    core.startEpisodeReal();
    rla.advance(SETTLE);
  };
  const instruction = () => {
    const query = document.getElementById('query');
    return query ? query.innerText.slice(0, 2000).replace(/\s+/g, ' ').trim() : '';
  };
  const goesOn = (seed, made) => played && played.seed === seed && played.made.length <= made.length
    && played.made.every((action, index) => action === made[index]);

  // The instructions of several seeds, without what the pages show.
  rla.ask = ({ seeds }) => seeds.map((seed) => { start(seed); return instruction(); });

  // Whether nothing of another episode can show: the page was loaded for this one, and is not past these actions.
  rla.unused = ({ seed, actions }) => started === 0 || (started === 1 && Boolean(goesOn(seed, actions.map((action) => JSON.stringify(action)))));

  // The functions of this file, in the page that is meant: an action may have led away to another one.
  rla.at = (page) => {
    if (!location.pathname.endsWith(`/${page}`)) throw new Error(`the page ${page} was left`);
    return rla;
  };

  // The middles of the elements that a click at their middle meets, by number: what is outside or covered is left out.
  rla.places = () => {
    const found = {};
    for (const [number, element] of rla.numbered()) {
      const at = middle(element);
      const x = Math.floor(at.x), y = Math.floor(at.y), met = document.elementFromPoint(x, y);
      if (met && (element === met || element.contains(met))) found[number] = [x, y];
    }
    return found;
  };

  // Many episodes in one call. Those of one seed come one after the other, so that they can go on from each other.
  rla.plays = (asked) => asked.map((one) => rla.play(one));

  rla.play = ({ seed, actions, most, longest }) => {
    const made = actions.map((action) => JSON.stringify(action));
    if (!goesOn(seed, made)) { start(seed); played = { seed, made: [], view: rla.view(most, longest) }; }
    let view = played.view;
    for (const [index, action] of actions.entries()) {
      if (index < played.made.length || WOB_DONE_GLOBAL) continue;
      perform(action);
      view = rla.view(most, longest);   // also where it is not asked for: elements get their numbers when they are seen
    }
    played = { seed, made, view };
    return {
      ...view, failed, met, done: Boolean(WOB_DONE_GLOBAL), reward: Number(WOB_RAW_REWARD_GLOBAL) || 0,
      instruction: instruction(),
    };
  };
})();
