"""The colours of pages for a browser, in light and in dark: each has the contrast that WCAG 2 asks of text (AA)."""

COLOURS = """\
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--quiet:#5c5c5c;--line:#d5d5d5;--soft:#f4f4f2;--link:#0b57a4;
--good:#17652b;--good-soft:#d9f2dd;--bad:#98201f;--bad-soft:#fbdcdc;--open:#6b5200;--open-soft:#f8ecc4;--mark:#ffe566}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--quiet:#a5a5a5;--line:#3a3a3a;--soft:#202020;
--link:#84bdf8;--good:#8fdca4;--good-soft:#173d22;--bad:#f6a3a0;--bad-soft:#4c1d1d;--open:#e9ce78;--open-soft:#403510;--mark:#705f00}}
"""
"""The beginning of a page's style; the rest uses these names."""
