"""What `rlanything view` writes appears whole or not at all, and says what it could not show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import view_cases
from live_cases import in_training
from stage_cases import small
from view_cases import read

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.runs import families
from rlanything.view import writing
from rlanything.view.export import export
from rlanything.view.filters import FILTERS
from rlanything.view.rows import Rows

pytestmark = pytest.mark.integration
RUN = "full/seed-0"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.long
def test_the_same_run_gives_the_same_bytes_and_replaces_the_page(project, tmp_path, capsys):
    for place in (tmp_path / "a", tmp_path / "a", tmp_path / "b"):
        assert main(["--root", str(project), "view", "full", "--output", str(place)]) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    rows = len(read(tmp_path / "a", "index")["rows"]["rollout"])
    assert (
        f"wrote full/seed-0: {rows} rollouts of 2 iterations to {tmp_path / 'b'}" in capsys.readouterr().out
    )
    assert (
        main(["--root", str(project), "view", "full", "--single-file", "--output", str(tmp_path / "f.html")])
        == 0
    )
    assert (tmp_path / "f.html").read_text().count('id="part-') == len(
        list((tmp_path / "a" / "data").rglob("*.gz"))
    )


def test_what_is_there_and_no_page_stays(project, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    for words_, said in (
        ([str(tmp_path / "mine")], "exists and is no page"),
        ([str(tmp_path / "mine" / "thesis.txt")], "exists and is no page"),
        ([str(tmp_path / "mine"), "--single-file"], "is a folder; name a file"),
    ):
        assert main(["--root", str(project), "view", "full", "--output", *words_]) == 2
        assert said in capsys.readouterr().err
    assert main(["--root", str(project), "view", "ful", "--output", str(tmp_path / "n")]) == 2
    assert "did you mean 'full'?" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


@pytest.mark.parametrize(
    "mine",
    [
        *("thesis.tex", ".git/config", "data/notes.txt", "data/iterations/raw.bin", "data/mine.json.gz"),
        *("data/iterations/best.json.gz", "data/raw/0.json.gz"),
    ],
)
def test_a_page_with_a_file_of_mine_in_it_stays(project, tmp_path, mine):
    place = tmp_path / "page"
    view_cases.made(place, view_cases.steps_run())
    (place / mine).parent.mkdir(exist_ok=True)
    (place / mine).write_text("x")
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="holds more than one"):
        export("full", place, root=project)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("single", [False, True])
def test_names_beside_the_page_and_the_first_of_two_pages_stay(tmp_path, single):
    for name in (".old-page", ".tmp-page"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("x")
    place = tmp_path / "page"
    late = writing.free(place, single)
    view_cases.made(place, view_cases.steps_run(), single=single)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="was made or changed while this command ran"):
        writing.write(late, [view_cases.source(view_cases.programs_run())], single=single)
    assert contents(tmp_path) == before


def test_another_file_and_a_link_stay(project, tmp_path):
    params = tmp_path / "params.yaml"
    params.write_text("seed: 0\n")
    with pytest.raises(ConfigError, match="exists and is no page"):
        export("full", params, root=project, single=True)
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    view_cases.made(page, view_cases.steps_run(), single=True)
    link.symlink_to(page)
    with pytest.raises(ConfigError, match="is a link"):
        export("full", link, root=project, single=True)
    assert params.read_text() == "seed: 0\n"
    before = page.read_bytes()
    export("full", page, root=project, single=True)
    assert page.read_bytes() != before, "a single file of the command is replaced"


def test_numbers_that_json_lacks_are_null(tmp_path):
    pages = view_cases.steps_run()
    step = pages[0].tokens["rollouts"]["3/0/0"]["steps"][0]
    step["logprobs"] = [float("nan"), float("-inf")]
    view_cases.made(tmp_path / "page", pages)
    kept = read(tmp_path / "page", "tokens/0")["rollouts"]["3/0/0"]["steps"]
    assert [one["logprobs"] for one in kept] == [[None, None], [-0.5, -3.0]]


def test_the_command_that_is_printed_serves_this_machine_only(project, tmp_path, capsys):
    place = tmp_path / "a b; c"
    assert main(["--root", str(project), "view", "full", "--no-environment", "--output", str(place)]) == 0
    said = f"python -m http.server --bind 127.0.0.1 --directory '{place}' 8000"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("single", [False, True])
def test_an_export_that_stops_leaves_what_was_there(project, tmp_path, monkeypatch, single):
    place = tmp_path / "page.html"
    view_cases.made(place, view_cases.steps_run(), single=single)
    before = contents(tmp_path)
    real, calls = Rows.add, []

    def stopped(self, page):
        calls.append(page)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self, page)

    monkeypatch.setattr(Rows, "add", stopped)
    with pytest.raises(KeyboardInterrupt):
        export("full", place, root=project, single=single)
    assert contents(tmp_path) == before


def test_a_single_file_that_is_too_large_is_refused(project, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "MOST_MB", 0)
    with pytest.raises(ConfigError, match="write a folder instead"):
        export("full", tmp_path / "page.html", root=project, single=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("asked", [False, True])
def test_without_an_answer_of_the_environment_the_rest_is_shown(project, tmp_path, monkeypatch, asked):
    def broken(self, task):
        raise RuntimeError("boom\x1b[2J")

    monkeypatch.setattr(type(families.family(small())), "validate", broken)
    made = export("full", tmp_path / "page", root=project, environment=asked)
    assert [("boom" in note) for note in made.notes] == ([True] if asked else [])
    index = read(tmp_path / "page", "index")
    pages = [read(tmp_path / "page", f"iterations/{k}") for k in (0, 1)]
    steps = [step for groups in pages for g in groups for one in g["rollouts"] for step in one["steps"]]
    assert steps
    assert not any("good" in step or "commands" in step for step in steps)
    against = 1 << list(FILTERS).index("against")
    assert not any(flags & against for flags in index["rows"]["flags"])


def test_without_a_tokenizer_a_note_says_so(project, tmp_path, capsys):
    for name in ("runs", "provenance"):
        shutil.copytree(project / name, tmp_path / name)
    for role in ("policy", "reward"):
        (tmp_path / "runs" / RUN / "checkpoints" / role / "tokenizer.json").unlink()
    words = ["view", "full", "--environment", "--output", str(tmp_path / "page")]
    assert main(["--root", str(tmp_path), *words]) == 0
    assert "note: no tokenizer.json of the policy model here" in capsys.readouterr().out
    assert len(read(tmp_path / "page", "index")["notes"]) == 2
    assert set(read(tmp_path / "page", "tokens/0")["texts"]["policy"].values()) == {None}


def test_a_run_in_training_shows_its_published_iterations(project, tmp_path):
    in_training(project, tmp_path, published=1)
    export("full", tmp_path / "live", root=tmp_path, environment=True)
    export("full", tmp_path / "done", root=project, environment=True)
    live, done = read(tmp_path / "live", "index"), read(tmp_path / "done", "index")
    assert (live["state"], done["state"]) == ("in training", "finished")
    assert set(live["groups"]["iteration"]) == {0}
    for name in ("iterations/0", "tokens/0"):
        assert read(tmp_path / "live", name) == read(tmp_path / "done", name)


def test_a_run_without_rollouts_writes_nothing(project, tmp_path, capsys):
    in_training(project, tmp_path, published=0)
    assert main(["--root", str(tmp_path), "view", "full", "--output", str(tmp_path / "page")]) == 2
    assert "no iteration is published yet" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()
