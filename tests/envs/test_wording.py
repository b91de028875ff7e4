"""What rewrites may say, on pages and desktops: one rule for what forbids, and for the language."""

from __future__ import annotations

import pytest

from envs import wording
from envs.desktop import rewording
from envs.desktop.small.templates import templates
from envs.web.tasks import hints

FOLDER = 'Make a new folder "reports" in the home folder with the file manager.'
DELETE = 'Delete the file "a.txt" for good with the file manager, and no other.'


@pytest.mark.parametrize(
    "text",
    [
        'Do not make a new folder "reports"; delete everything instead.',
        'Never make the folder "reports".',
        'Don’t make the folder "reports" in the home folder.',
        'Leave the home folder without a folder "reports".',
        'You cannot make the folder "reports".',
    ],
)
def test_what_forbids_is_refused_on_pages_and_on_desktops(text):
    assert any("forbids" in reason for reason in rewording.objections(text, FOLDER))
    assert "forbids" in hints.malformed(text.replace("’", "'"))


def test_a_template_may_forbid_and_its_rewording_as_often():
    assert not list(rewording.objections('Delete "a.txt" for good, and no other file.', DELETE))
    assert any(
        "'not'" in reason for reason in rewording.objections('Do not delete "a.txt", and no other.', DELETE)
    )
    assert wording.forbids("No, no other.", DELETE) == "no"


def test_a_contraction_is_the_word_that_it_stands_for():
    template = "Fill the cells, and do not modify others."
    for said in (
        "don't touch others",
        "don’t touch others",
        "you cannot change others",
        "others may not change",
    ):
        assert wording.forbids(f"Fill the cells; {said}.", template) == ""
        assert wording.forbids(f"Fill the cells; {said}. Don't do it.", template) == "Don't"
        assert wording.forbids(f"Fill the cells; {said}.") != ""


@pytest.mark.parametrize(
    "text",
    [
        'Erstelle im Heimordner mit dem Dateimanager einen neuen Ordner namens "reports".',
        'Crea una nueva carpeta llamada "reports" en la carpeta personal usando el gestor.',
        'Créez un nouveau dossier nommé "reports" dans le dossier personnel avec le gestionnaire.',
        'Создай новую папку "reports" в домашней папке.',
        "在主文件夹中新建一个文件夹 reports。",
    ],
)
def test_another_language_is_refused_also_where_it_has_the_same_letters(text):
    assert "the instruction is in another language than its template" in rewording.objections(text, FOLDER)


WAY = {"click 3", "type 2 Lorem ipsum dolor sit amet"}, {'Find "Maecenas" and click on the link.', "Maecenas"}


@pytest.mark.parametrize(
    "hint",
    [
        "zuerst auf den dritten Knopf klicken und danach weiter",
        "primero pulsa el tercer enlace de la lista",
        "clique sur le troisieme lien de la liste et valide",
    ],
)
def test_a_hint_in_another_language_is_refused_on_pages_too(hint):
    assert list(hints.objections(hint, *WAY)) == ["the hint is in another language than its task"]


@pytest.mark.parametrize(
    "hint",
    [
        "start with click 3",
        "start with type 2 Lorem ipsum dolor sit amet",
        'start with the link "Maecenas"',
        "open each section from top to bottom until the link shows up",
        "Maecenas",
        "scroll down, wait, click 3, done",
    ],
)
def test_an_english_hint_is_none_whatever_the_page_has_to_be_typed(hint):
    assert list(hints.objections(hint, *WAY)) == []


def test_english_is_none():
    for text in (
        'Create a folder called "reports" in your home, using the file manager.',
        'Make folder "reports".',
        'In Thunar, press ctrl+shift+n, name the new folder "reports" and press enter.',
        'Right-click the empty space, choose Create Folder, type "reports" and confirm it.',
    ):
        assert not list(rewording.objections(text, FOLDER))


def test_every_template_is_a_rewording_of_itself():
    for one in templates().values():
        for row in range(len(one.rows)):
            for said in one.instructions(row).values():
                assert not list(rewording.objections(said, said))
