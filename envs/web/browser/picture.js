// Where pictures of pages are taken: what a picture must not show, and what must be there before it is taken. This runs
// in no page whose agents read text alone.
(() => {
  // Real time never shows: transitions, animations and the cursor of a field have a clock that `clock.js` does not stop.
  // The display of rewards tells of other episodes, and the cover hides how an episode has ended.
  const style = new CSSStyleSheet();
  style.replaceSync(`
    *, *::before, *::after { transition: none !important; animation: none !important; caret-color: transparent !important; }
    * { scroll-behavior: auto !important; }
    #reward-display, #click-canvas, #sync-task-cover { visibility: hidden !important; }
  `);
  document.adoptedStyleSheets = [style];

  // The addresses of all images that the page shows or may show: of elements, and of backgrounds.
  const addresses = () => {
    const found = new Set([...document.images].map((image) => image.currentSrc || image.src));
    for (const image of document.querySelectorAll('image, use')) found.add(image.href ? image.href.baseVal : '');
    for (const element of document.querySelectorAll('*')) {
      for (const pseudo of [null, '::before', '::after']) {
        const shown = getComputedStyle(element, pseudo);
        for (const value of [shown.backgroundImage, shown.listStyleImage, shown.content, shown.borderImageSource]) {
          if (value.includes('url(')) for (const [, address] of value.matchAll(/url\("([^"]*)"\)/g)) found.add(address);
        }
      }
    }
    found.delete('');
    return [...found];
  };
  const loaded = new Map();
  const load = (address) => {
    if (!loaded.has(address)) {
      const image = new Image();
      image.src = address;
      loaded.set(address, [image, image.decode().catch(() => {})]);   // the image is kept, so that it stays decoded
    }
    return loaded.get(address)[1];
  };
  // Resolves when all images are there. What cannot be loaded is never shown, so it is not waited for.
  rla.loaded = async () => {
    await document.fonts.ready;
    await Promise.all(addresses().map(load));
    await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
  };
})();
