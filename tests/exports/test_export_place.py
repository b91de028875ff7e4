"""An export appears whole or not at all, replaces only what an export wrote, and says first what it cannot do."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from live_cases import in_training

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.exports import texts
from rlanything.exports.export import export
from rlanything.exports.formats import FORMATS
from rlanything.exports.place import RECORD
from rlanything.exports.reading import KNOWN_FILTERS, NothingChosen, Reader, Selection
from rlanything.files.hashes import tree_hash

pytestmark = pytest.mark.integration
RUN = "full/seed-0"
PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()


def asked(root: Path, place: Path, *words: str, kind: str = "trl-sft") -> int:
    more = ["--format", kind, "--output", str(place)]
    return main(["--root", str(root), "rollouts", "export", RUN, *more, *words])


def test_help_and_page_name_every_format_and_filter(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["rollouts", "export", "--help"])
    said = capsys.readouterr().out
    for name in (*FORMATS, *KNOWN_FILTERS):
        assert f" {name}" in said
        assert f"`{name}`" in PAGE


@pytest.mark.long
def test_the_commands_of_the_page_make_what_it_says(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    for line in block.splitlines():
        program, *words = line.split()
        assert program == "rlanything"
        assert main(["--root", str(project), *words]) == 0
    assert {path.name for path in (tmp_path / "exports").iterdir()} == {
        *("inspect", "tables", "sft", "pairs", "verifiers"),
    }


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_run_gives_the_same_bytes(exported, project, tmp_path, kind):
    export(RUN, kind, tmp_path / "again", root=project)
    assert tree_hash(tmp_path / "again") == tree_hash(exported(kind))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--format", "inspcet"],
            "--format inspcet: unknown; did you mean 'inspect'? known: datasets, inspect",
        ),
        (["--filter", "failled"], "--filter failled: unknown; did you mean 'failed'?"),
        (["--filter", "against"], "--filter against: needs --environment"),
        (["--iteration", "7"], "--iteration 7: unknown; the nearest is 1. Known: 0, 1"),
        (["--slot", "-4"], "--slot -4: unknown; the nearest is 0."),
        (["--rollout", "99"], "--rollout 99: unknown; the nearest is 3. Known: 0 to 3"),
        (["--min-reward", "nan"], "--min-reward nan: must be a finite number"),
        (["--min-reward", "1000"], "none of its rollouts is as asked for: nothing is written"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(project, tmp_path, capsys, words, said):
    assert asked(project, tmp_path / "out", *words) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_replaced_only_as_it_was_written(project, tmp_path, capsys):
    place = tmp_path / "out"
    assert asked(project, place) == 0
    assert asked(project, place, "--iteration", "0", kind="trl-unpaired") == 0
    before = (place / "train.jsonl").read_bytes()
    (place / "note.txt").write_text("mine")
    assert asked(project, place) == 2
    assert "it has other files than the export" in capsys.readouterr().err
    (place / "note.txt").unlink()
    with (place / "README.md").open("a") as card:
        card.write("mine")
    assert asked(project, place) == 2
    assert "README.md was changed after it was written" in capsys.readouterr().err
    assert (place / "train.jsonl").read_bytes() == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for name, why in (("other", "is no export of"), ("file", "is a file"), ("link", "is a link")):
        assert asked(project, tmp_path / name) == 2
        assert why in capsys.readouterr().err
    (place / RECORD).write_text("{}")
    assert asked(project, place) == 2


def test_names_beside_the_export_and_the_first_of_two_exports_stay(project, tmp_path, monkeypatch):
    for name in (".old-out", ".tmp-out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("x")
    real, place = Reader.iterations, tmp_path / "out"

    def raced(self, numbers):
        monkeypatch.setattr(Reader, "iterations", real)
        assert asked(project, place, kind="trl-unpaired") == 0
        yield from real(self, numbers)

    monkeypatch.setattr(Reader, "iterations", raced)
    with pytest.raises(ConfigError, match="was made or changed while this command ran"):
        export(RUN, "trl-sft", place, root=project)
    assert '"format": "trl-unpaired"' in (place / "README.md").read_text()
    assert all((tmp_path / name / "thesis.tex").is_file() for name in (".old-out", ".tmp-out"))


def test_a_damaged_run_leaves_nothing(undisturbed, tmp_path, capsys):
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    file = tmp_path / "runs" / RUN / "rollouts/iter_0002.jsonl.gz"
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-40]))
    assert asked(tmp_path, tmp_path / "made" / "out") == 2
    assert f"{file}:" in capsys.readouterr().err
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.parametrize("place", ["slot", "token", "log-prob"])
def test_a_number_that_no_table_holds_is_refused_with_its_file(undisturbed, tmp_path, capsys, place):
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    file = tmp_path / "runs" / RUN / "rollouts/iter_0002.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    step = records[1]["trajectory"]["steps"][0]
    if place == "slot":
        records[1]["trajectory"]["slot"] = 2**64
    else:
        step["response" if place == "token" else "logprobs"][0] = 10**300
    file.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))
    assert asked(tmp_path, tmp_path / "made" / "out", kind="datasets") == 2
    (said,) = capsys.readouterr().err.splitlines()
    key = {"slot": "slot", "token": "steps.0.response.0", "log-prob": "steps.0.logprobs.0"}[place]
    assert f"trajectory.{key}: Input should be less than" in said
    assert str(file) in said
    assert list((tmp_path / "made").iterdir()) == []


def test_a_run_in_training_gives_its_published_iterations(project, exported, tmp_path):
    in_training(project, tmp_path, published=1)
    made = export("full", "trl-sft", tmp_path / "out", root=tmp_path)
    rows = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    every = (exported("trl-sft") / "train.jsonl").read_text().splitlines()
    assert rows == [row for row in every if json.loads(row)["source"]["iteration"] == 0]
    assert made.counts["iterations"] == 1
    assert '"state": "in training"' in (tmp_path / "out" / "README.md").read_text()


@pytest.fixture(scope="module")
def two_seeds(undisturbed, tmp_path_factory) -> Path:
    """The project with a second seed, which has the bytes of the first."""
    root = tmp_path_factory.mktemp("two")
    for name in ("runs", "provenance", "data", "models"):
        if (undisturbed.parents[2] / name).exists():
            shutil.copytree(undisturbed.parents[2] / name, root / name, symlinks=True)
    shutil.copytree(root / "runs" / RUN, root / "runs" / "full" / "seed-1")
    return root


@pytest.mark.long
def test_an_arm_gives_all_of_its_seeds(two_seeds, tmp_path, capsys):
    place = tmp_path / "out"
    words = ["rollouts", "export", "full", "--format", "datasets", "--output", str(place)]
    assert main(["--root", str(two_seeds), *words]) == 0
    assert "wrote 2 runs, " in capsys.readouterr().out
    assert sorted(path.name for path in place.iterdir()) == [RECORD, "README.md", "seed-0", "seed-1"]
    rows = pl.read_parquet(place / "seed-*" / "rollouts" / "*.parquet")
    one = pl.read_parquet(place / "seed-0" / "rollouts" / "*.parquet")
    assert rows["run"].unique().sort().to_list() == ["full/seed-0", "full/seed-1"]
    assert rows.height == 2 * one.height
    card = (place / "README.md").read_text()
    assert "  data_files: seed-*/rollouts/*.parquet\n" in card
    told = json.loads(card.partition("```json\n")[2].partition("\n```")[0])
    assert told["runs"] == ["full/seed-0", "full/seed-1"]
    assert told["counts"]["rollouts"] == rows.height
    assert main(["--root", str(two_seeds), *words]) == 0, "it is replaced as it was written"


@pytest.mark.long
def test_a_seed_of_which_nothing_is_as_asked_for_is_left_out_with_a_note(two_seeds, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="full/seed-0: none of its rollouts is as asked for"):
        export("full", "trl-sft", tmp_path / "none", selection=Selection(min_reward=1e3), root=two_seeds)
    assert list(tmp_path.iterdir()) == []
    read = Reader.iterations

    def without_first(self, numbers):
        if self.run.name.endswith("seed-0"):
            raise NothingChosen(f"{self.run.name}: none")
        yield from read(self, numbers)

    monkeypatch.setattr(Reader, "iterations", without_first)
    made = export("full", "trl-sft", tmp_path / "out", root=two_seeds)
    assert made.notes == ["full/seed-0: none"]
    assert made.counts["runs"] == 1
    assert sorted(path.name for path in made.place.iterdir()) == [RECORD, "README.md", "seed-1"]


@pytest.mark.long
def test_selections_are_what_they_say(project, exported, tmp_path):
    rows = [json.loads(line) for line in (exported("trl-sft") / "train.jsonl").read_text().splitlines()]
    places = {
        (s["iteration"], s["slot"], s["proposal"], s["rollout"]): s["reward"]
        for s in (r["source"] for r in rows)
    }
    iteration, slot = rows[0]["source"]["iteration"], rows[0]["source"]["slot"]
    bound = sorted(places.values())[len(places) // 2]
    solved = {k for k, r in places.items() if r is not None and r > 0}
    cases = {
        "where": (Selection([iteration], [slot], [0]), lambda k: k[:2] == (iteration, slot) and k[3] == 0),
        "reward": (Selection(min_reward=bound), lambda k: places[k] >= bound),
        "failed": (Selection(filters=["failed"]), None),
        "solved": (Selection(filters=["solved"]), None),
    }
    found = {}
    for name, (selection, wanted) in cases.items():
        export(RUN, "trl-sft", tmp_path / name, selection=selection, root=project)
        sources = [
            json.loads(line)["source"] for line in (tmp_path / name / "train.jsonl").read_text().splitlines()
        ]
        found[name] = {(s["iteration"], s["slot"], s["proposal"], s["rollout"]) for s in sources}
        if wanted:
            assert found[name] == {k for k in places if wanted(k)}
    assert found["failed"] | found["solved"] == set(places)
    assert not found["failed"] & found["solved"]
    assert found["solved"]
    assert solved


def test_names_of_others_stay_inside_the_card_s_block(undisturbed, tmp_path):
    """A run's folder may be named by anybody; nothing that it says ends the block or begins a heading."""
    evil = "``` --- # owned <script> [x](javascript:1)"
    for name in ("runs", "provenance"):
        shutil.copytree(undisturbed.parents[2] / name, tmp_path / name)
    (tmp_path / "runs" / "full").rename(tmp_path / "runs" / evil)
    record = json.loads((tmp_path / "provenance" / "full.json").read_text())
    record["config"]["arms"][evil] = record["config"]["arms"]["full"]
    (tmp_path / "provenance" / f"{evil}.json").write_text(json.dumps({**record, "arm": evil}))
    made = export(f"{evil}/seed-0", "datasets", tmp_path / "out", root=tmp_path)
    card = (made.place / "README.md").read_text()
    assert [line for line in card.splitlines() if line.startswith(("#", "```", "---"))] == [
        *("---", "---", "# Rollouts of an RLAnything run", "```json", "```"),
    ]
    assert json.loads(card.partition("```json\n")[2].partition("\n```")[0])["run"] == f"{evil}/seed-0"


def test_a_bound_of_zero_is_recorded(project, tmp_path):
    export(RUN, "trl-sft", tmp_path / "out", selection=Selection([0], min_reward=0.0), root=project)
    told = (tmp_path / "out" / "README.md").read_text().partition("```json\n")[2].partition("\n```")[0]
    assert json.loads(told)["selection"] == {"iterations": [0], "min_reward": 0.0}


def test_values_are_valid_unicode_and_finite():
    value = {"a\ud800": ["\udfff", float("nan"), float("inf"), 1.5, None, True, ("é", {"k": -float("inf")})]}
    assert texts.clean(value) == {"a\\ud800": ["\\udfff", None, None, 1.5, None, True, ["é", {"k": None}]]}
    assert json.loads(texts.json_text(value)) == texts.clean(value)
    assert texts.json_text("\u2028").isascii()
