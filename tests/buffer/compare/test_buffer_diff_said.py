"""What a comparison says: words that changed, where changes concentrate, and texts in Markdown."""

from math import comb

import pytest
from buffer_cases import ACCEPTED, NASTY, command, event, record, relaxed, task, write_house, write_rollouts
from hypothesis import given
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff, export
from rlanything.buffer.views.compare.markdown import escaped
from rlanything.buffer.views.compare.statistics import _chances
from rlanything.buffer.views.tasks.word_diff import word_diff


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_house(tmp_path)
    (tmp_path / "params.yaml").write_text("adaptation: {alpha_low: 0.3, alpha_high: 0.7}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@relaxed
@given(st.text("ab \n", max_size=12), st.text("ab \n", max_size=12))
def test_word_diffs_read_as_both_sentences(old, new):
    parts = word_diff(old, new)
    assert "".join(text for kind, text in parts if kind != "new") == old
    assert "".join(text for kind, text in parts if kind != "old") == new


def test_words_that_changed_side_by_side_are_one_change():
    assert word_diff("put a red mug here", "put a blue cup here") == [
        ("same", "put a "),
        ("old", "red mug"),
        ("new", "blue cup"),
        ("same", " here"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Read n.\nPrint it.", "Read n.\nAdd one.\nPrint it.", "Read n. {+Add one. +}Print it."),
        ("Read n.\r\nAdd one.\r\nEnd.", "Read n.\r\nEnd.", "Read n. [-Add one. -]End."),
        ("Read n.\n\nPrint it.", "Read m.\n\nPrint it.", "Read [-n-]{+m+}.  Print it."),
        ("Read n. Print it.", "Read n.\nPrint it.", r"Read n.[- -]{+\n+}Print it."),
        ("Read n.\nPrint it.", "Read n.\n\nPrint it.", r"Read n.[-\n-]{+\n\n+}Print it."),
        ("Print it.", "Print it.\n", r"Print it.{+\n+}"),
    ],
)
def test_a_line_break_is_a_blank_in_a_terminal_and_shown_where_it_alone_changed(
    tmp_path, capsys, old, new, line
):
    start = TaskBuffer.start([task(0, old)])
    made = event(start, 0, ACCEPTED, task(0, new), iteration=0)
    record(tmp_path / "runs/a/buffer", 0, start)
    record(tmp_path / "runs/a/buffer", 1, start.apply([made]), [made])
    assert command("diff", "a", root=tmp_path) == 0
    assert f"\n    {line}\n" in capsys.readouterr().out


def test_only_an_earlier_buffer_of_the_same_run_is_from_before_a_change(here):
    def reasons(a: str, b: str) -> dict[int, str]:
        return {row["slot"]: row["reason"] for row in diff(a, b, only="changed")["slots"]}

    before = "The second buffer is from before the task was made harder."
    for start in (
        "full/seed-0@0",
        "runs/full/seed-0/buffer/iter_0000.jsonl",
        str(here / "runs/full/seed-0@1"),
    ):
        assert set(reasons("full/seed-0", start).values()) == {before}
    assert reasons("full/seed-0", "full/seed-1@1")[3].startswith(
        "A: The policy solved 88%, so it was made harder"
    )
    export("full/seed-1@0", here / "start.jsonl")
    made = "A: The policy solved 100%, so it was made harder in iteration 0 and solves 75% of it."
    assert reasons("full/seed-1", "start.jsonl")[0] == f"{made} B: It has v0; no try is recorded."


@pytest.mark.parametrize(
    ("k", "n", "changed", "total"), [(2, 3, 4, 10), (0, 3, 4, 10), (3, 3, 4, 10), (5, 5, 8, 9)]
)
def test_p_is_the_hypergeometric_upper_tail(k, n, changed, total):
    exact = sum(comb(changed, j) * comb(total - changed, n - j) for j in range(k, n + 1)) / comb(total, n)
    assert _chances([(k, n)], changed, total) == pytest.approx([exact])
    assert _chances([(k, n), (1, 3), (1, 2)], changed, total)[0] == pytest.approx(min(1, 2 * exact))
    assert _chances([(2, 2)], changed, total) == [1.0], "too few tasks to be compared"


def test_the_concentration_says_where(here):
    rows = diff("full/seed-0", by="object")["concentration"]
    assert rows[0]["value"] == "mug"
    assert (rows[0]["changed"], rows[0]["tasks"]) == (2, 4)
    assert {row["field"] for row in rows} == {"goal.object"}


def test_the_band_comes_from_the_projects_parameters(here):
    inside = diff("full/seed-0")["difficulty"]["inside"]
    assert (inside["new"]["low"], inside["new"]["high"]) == (0.3, 0.7)


NOT_KEPT = "kept: accuracies only of tasks that were to be rewritten"


def test_a_run_without_rollouts_has_no_share_inside_the_band(here, capsys):
    """It knows acc(q) only where a rewrite was asked for, which is outside the band."""
    sides = diff("full/seed-0")["difficulty"]["inside"]
    for side in ("old", "new"):
        assert sides[side] == {"slots": None, "of": None, "share": None, "low": 0.3, "high": 0.7}
    said = f"4 of the old tasks were first measured after A; no rollouts {NOT_KEPT}"
    assert command("diff", "full/seed-0", "--stat") == 0
    out = capsys.readouterr().out
    assert "difficulty: inside the band [0.30, 0.70]: ? -> ?\n" in out
    assert f"\n  {said.replace('; ', chr(10) + '  ')}\n" in out
    assert command("diff", "full/seed-0", "--md") == 0
    assert f"]: ? -> ?; {said}\n" in capsys.readouterr().out
    assert command("diff", "full/seed-0", "--html", "page.html") == 0
    assert f"? -&gt; ?; not measured: 8 → 8; {said}</p>" in (here / "page.html").read_text()


def test_a_share_is_shown_of_the_run_that_kept_its_rollouts(here, capsys):
    write_rollouts(here / "runs/full/seed-0")
    assert command("diff", "full/seed-1", "full/seed-0", "--stat") == 0
    out = capsys.readouterr().out
    assert "[0.30, 0.70]: ? -> 2 of 5 (40%)\n" in out
    assert f"\n  no rollouts of A {NOT_KEPT}\n" in out
    inside = diff("full/seed-0", details=False)["difficulty"]["inside"]
    assert inside["old"]["share"] is not None, "what was measured after the start comes from the rollouts"
    assert inside["new"]["share"] is not None
    assert diff("full/seed-1@0", "full/seed-1@0")["difficulty"]["inside"]["new"]["of"] == 0


def test_markdown_shows_task_text_as_it_is():
    assert escaped("<b>@me</b> `x` | *y*\nz") == "\\<b>&#64;&#8203;me\\</b> \\`x\\` \\| \\*y\\* z"
    assert escaped("full/seed-0@12 -> me") == "full/seed-0&#64;12 -> me"  # it can be copied
    assert escaped("@12 a@b.org a@1.org") == "&#64;&#8203;12 a&#64;&#8203;b.org a&#64;&#8203;1.org"
    no_issue = "GH&#35;&#8203;3 &#36;&#8203;x&#36;&#8203; &#35;&#8203; a"
    assert escaped("GH#3 $x$ # a") == no_issue  # nor formula, nor heading
    assert escaped("GH-12 gh-7 !12 x!3 Hi! &5 R&D") == (
        "GH-&#8203;12 gh-&#8203;7 &#33;&#8203;12 x&#33;&#8203;3 Hi! &#38;&#8203;5 R\\&D"
    )
    assert escaped('50 % %v1 %"a" ~bug ~ 3') == '50 % &#37;&#8203;v1 &#37;&#8203;"a" &#126;&#8203;bug \\~ 3'
    assert escaped("https://a.org www.b.org a:b") == "https&#58;&#8203;//a.org www&#8203;.b.org a:b"
    assert "\x1b" not in escaped(NASTY)
