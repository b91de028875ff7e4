// Runs before a page's own scripts. Time stands still until `rla.advance`, so that an episode does not depend on how
// fast this machine is. Elements that listen to clicks are marked, because no attribute shows them.
(() => {
  const START = Date.UTC(2016, 5, 15, 12);
  const MOST_CALLS = 5000;
  const Real = Date;
  let now = 0, last = 0, timers = new Map();

  const add = (call, delay, every, args) => {
    timers.set(++last, { call, at: now + Math.max(1, Number(delay) || 0), every, args, order: last });
    return last;
  };
  const remove = (id) => { timers.delete(id); };
  const earliest = (until) => {
    let found = null;
    for (const timer of timers.values()) {
      if (timer.at > until) continue;
      if (!found || timer.at < found.at || (timer.at === found.at && timer.order < found.order)) found = timer;
    }
    return found;
  };
  const fire = (timer) => {
    now = Math.max(now, timer.at);
    if (timer.every === null) timers.delete(timer.order);
    else timer.at = now + Math.max(1, timer.every);
    try { timer.call.apply(window, timer.args); } catch (error) { console.error(error); }
  };

  window.setTimeout = (call, delay, ...args) => add(call, delay, null, args);
  window.setInterval = (call, delay, ...args) => add(call, delay, Number(delay) || 0, args);
  window.requestAnimationFrame = (call) => add(() => call(now), 16, null, []);
  window.clearTimeout = window.clearInterval = window.cancelAnimationFrame = remove;
  performance.now = () => now;
  window.Date = class extends Real {
    constructor(...args) { if (args.length) super(...args); else super(START + now); }
    static now() { return START + now; }
  };
  // A dialog would stop the page until somebody answers it.
  window.alert = () => {};
  window.confirm = () => true;
  window.prompt = () => null;

  const heard = new WeakSet();
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (['click', 'mousedown', 'mouseup', 'dblclick'].includes(type) && this instanceof Element) heard.add(this);
    return listen.call(this, type, ...rest);
  };
  // Nothing leaves the page: a followed link would end it.
  listen.call(window, 'submit', (event) => event.preventDefault(), true);
  listen.call(window, 'click', (event) => {
    const link = event.target.closest && event.target.closest('a[href]');
    if (link && !link.getAttribute('href').startsWith('#')) event.preventDefault();
  }, true);

  window.rla = {
    hears: (element) => heard.has(element),
    advance: (milliseconds) => {
      const until = now + milliseconds;
      for (let calls = 0, timer; calls < MOST_CALLS && (timer = earliest(until)); calls++) fire(timer);
      now = until;
    },
    rewind: () => { now = 0; last = 0; timers = new Map(); },
  };
})();
