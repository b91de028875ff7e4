"""Kinds with texts to type: from the instruction, from the page, or worked out."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from envs.web.browser.view import View
from envs.web.kinds.goals import TEXT, Goal, both, fill, press, rule
from envs.web.kinds.kind import Words, cased, kind, numbers, of_page, of_words
from envs.web.kinds.scene import Scene, click, typing

_SUBMIT = press("Submit", "button", "item")
_LOGIN = r'Enter the username "(?P<user>.+)" and the password "(?P<secret>.+)" into the text fields and press login\.'
_PAGERS = ("<", ">", "1", "2", "3", "First", "Last")
"""The links of a search engine that change the page of results."""
_A_PAGE = 3
"""Results on a page."""
_MOVIES = r"Search for (?P<genre>.+) movies directed by (?P<director>.+) from year (?P<year>\d+)\."


def _upper(words: Words) -> Words:
    return {"text": words["text"].upper() if words["case"] == "upper" else words["text"].lower()}


def _cell(scene: Scene, label: str) -> str:
    """The text behind a label in a table."""
    texts = scene.texts()
    return next((b for a, b in pairwise(texts) if a == label), "")


def _copy(field: int, source: Callable[[Scene], str]) -> Goal:
    """Have in a field the text that the page shows elsewhere."""

    def wants(scene: Scene) -> list[str]:
        item, text = scene.fields()[field], source(scene)
        return [typing(item, text)] if text and item.value != text else []

    return rule(wants, TEXT)


def _cells(scene: Scene) -> list[str]:
    """Each field of a form is named by the label of a row."""
    return [
        typing(item, text)
        for item in scene.fields()
        if (text := _cell(scene, item.name.rstrip(":"))) and item.value != text
    ]


def _word(scene: Scene) -> str:
    words = re.findall(r"[A-Za-z]+", " ".join(scene.texts()))
    place = int(scene.words["place"])
    return words[place - 1] if place <= len(words) else ""


def _sum(scene: Scene) -> str:
    found = re.search(r"(-?\d+) *([-+x*]) *(-?\d+)", " ".join(scene.texts()))
    if found is None:
        return ""
    a, b = int(found[1]), int(found[3])
    return str({"+": a + b, "-": a - b}.get(found[2], a * b))


def _movie(scene: Scene) -> list[str]:
    """The three fields are named in different words on different layouts."""
    names = {"genre": "Genre", "director": "Director", "year": "Year|Date"}
    return [
        typing(item, scene.words[word])
        for item in scene.fields()
        for word, pattern in names.items()
        if re.search(pattern, item.name) and item.value != scene.words[word]
    ]


def _movies(view: View) -> list[str]:
    found = re.fullmatch(_MOVIES, view.instruction)
    return list(found.groups()) if found else []


def _result(scene: Scene) -> list[str]:
    """Search, then the page that shows the wanted result, then the result.

    Results are those of the text that was in the field when they were drawn: by a search, or by a change of the page.
    """
    field, text = scene.fields()[0], scene.words["text"]
    titles = [item for item in scene.having("link") if item.name not in _PAGERS]
    drawn = scene.before_click("Search", *_PAGERS)
    found = bool(titles) and drawn is not None and any(i.value == text for i in drawn.elements)
    wanted, place = divmod(int(scene.words["place"]) - 1, _A_PAGE)
    # The first page has no link to one before it, the last none to one after it.
    here = 0 if not scene.named("<", "link") else 1 if scene.named(">", "link") else 2
    if found and here == wanted:
        return [click(item) for item in titles[place : place + 1]]
    if field.value != text:
        return [typing(field, text)]
    search = scene.named("Search", "button")
    if not titles or here == wanted:
        return [click(item) for item in search]
    beside = scene.named(">" if here < wanted else "<", "link") if abs(wanted - here) == 1 else []
    first = search if wanted == 0 else []
    return [click(item) for item in [*scene.named(str(wanted + 1), "link"), *beside, *first]]


def _date(scene: Scene) -> list[str]:
    """A date field holds year-month-day, whatever was typed."""
    month, day, year = scene.words["text"].split("/")
    field = scene.fields()[0]
    done = field.value in (f"{year}-{month}-{day}", scene.words["text"])
    return [] if done else [typing(field, scene.words["text"])]


def _time(scene: Scene) -> list[str]:
    """A time field holds 24 hours."""
    clock, half = scene.words["text"].split(" ")
    hour, minute = clock.split(":")
    value = f"{int(hour) % 12 + 12 * (half == 'PM'):02d}:{minute}"
    field = scene.fields()[0]
    return [] if field.value == value else [typing(field, scene.words["text"])]


_ENTER = fill("{text}"), _SUBMIT
KINDS = (
    kind("enter-text", r'Enter "(?P<text>.+)" into the text field and press Submit\.', *_ENTER),
    kind("enter-text-dynamic", r'Enter "(?P<text>.+)" into the text field and press Submit\.', *_ENTER),
    kind(
        "enter-text-2",
        r'Type "(?P<text>.+)" in all (?P<case>upper|lower) case letters in the text input and press Submit\.',
        *_ENTER,
        derive=_upper,
        texts=cased,
    ),
    kind(
        "enter-password",
        r'Enter the password "(?P<text>.+)" into both text fields and press submit\.',
        both(fill("{text}", 0), fill("{text}", 1)),
        _SUBMIT,
    ),
    kind("login-user", _LOGIN, both(fill("{user}", 0), fill("{secret}", 1)), press("Login")),
    kind(
        "read-table",
        r"Enter the value of (?P<label>.+) into the text field and press Submit\.",
        _copy(0, lambda scene: _cell(scene, scene.words["label"])),
        _SUBMIT,
        texts=of_page,
    ),
    kind(
        "read-table-2",
        r"Enter the value that corresponds with each label into the form and submit when done\.",
        rule(_cells, TEXT),
        _SUBMIT,
        texts=of_page,
    ),
    kind(
        "find-word",
        r'Find the (?P<place>\d+)\w\w word in the paragraph, type that into the textbox and press "Submit"\.',
        _copy(0, _word),
        _SUBMIT,
        texts=of_words,
    ),
    kind(
        "simple-arithmetic",
        r"Solve the math problem and type your answer into the textbox\. Press submit when done\.",
        _copy(0, _sum),
        _SUBMIT,
        texts=numbers(-9, 81),
    ),
    *(
        kind(f"multi-{what}", _MOVIES, rule(_movie, TEXT), press("", "button", "item"), texts=_movies)
        for what in ("orderings", "layouts")
    ),
    kind(
        "search-engine",
        r'Use the textbox to enter "(?P<text>.+)" and press "Search", then find and click the '
        r"(?P<place>\d+)\w\w search result\.",
        rule(_result),
    ),
    kind("enter-date", r"Enter (?P<text>.+) as the date and hit submit\.", rule(_date, TEXT), _SUBMIT),
    kind("enter-time", r"Enter (?P<text>.+) as the time and press submit\.", rule(_time, TEXT), _SUBMIT),
)
