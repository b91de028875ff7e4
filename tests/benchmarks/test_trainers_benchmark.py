"""Our trainer beside TRL's: counts are equal and printed, and the sides take turns."""

from __future__ import annotations

import signal
import threading

import pytest
from transformers import Qwen2ForCausalLM

from benchmarks.trainers import __main__ as command
from benchmarks.trainers import ours, products, table, work
from benchmarks.trainers.turns import Clock, Turns, alternate
from benchmarks.trainers.work import Work

TINY = [
    "--prompts=2",
    "--group=4",
    "--prompt=20",
    "--spread=4",
    "--reply=3",
    "--rows=2",
    "--repeats=1",
    "--threads=1",
]
NEEDED = "trl is not installed: make exports, or pip install -e '.[exports]'"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "scored"),
    [(["--updates=2"], [0, 0, 1]), (["--beta=0.1", "--recompute"], [2, 2, 1])],
    ids=["two steps", "the KL term"],
)
def test_both_trainers_do_the_same_work(monkeypatch, capsys, words, scored):
    for name in ("trl", "datasets"):
        pytest.importorskip(name, reason=NEEDED)
    results = []
    measure = command.measure
    monkeypatch.setattr(command, "measure", lambda *asked: results.append(measure(*asked)) or results[-1])
    assert command.main([*TINY, *words]) == 0
    (found,) = results
    assert list(found) == ["native", "transformers", "TRL"]
    assert [len(iterations) for iterations in found.values()] == [2, 2, 2]
    steps = 2 if "--updates=2" in words else 1
    for iterations, times in zip(found.values(), scored, strict=True):
        one = iterations[-1]
        assert [one.counts[key] for key in table.EQUAL] == [24, 24, 8, steps]
        assert 8 * 23 <= one.counts["taught"] <= 8 * 27
        assert 4 <= one.counts["passes"] <= 8
        assert round(one.counts["scored"] / one.counts["taught"]) == times  # passes without gradients
        assert 0 < one.sampling < one.cpu
    out = capsys.readouterr().out
    assert "| 0.4M       | 1       | TRL " in out
    assert "'trl': " in out
    assert [iterations[-1].counts["passes"] for iterations in found.values()][-1] == 4  # 8 rows, 2 a pass
    assert "TRL: exactly 2 rows. Ours: at most 54 tokens" in out


def test_sides_take_turns_and_one_that_fails_ends_the_others():
    order, failed = [], RuntimeError("no more")

    def side(name: str, fails: bool, clock: Clock) -> None:
        clock.start()
        for turn in range(2):
            order.append(f"{name}{turn}")
            if fails and turn:
                raise failed
            clock.count(rows=1)
            clock.done()

    def sides(fails: bool) -> dict:
        return {name: lambda clock, name=name: side(name, fails and name == "b", clock) for name in "ab"}

    found = alternate(sides(False), 1)
    assert order == ["a0", "b0", "a1", "b1"]
    assert [one.counts["rows"] for iterations in found.values() for one in iterations] == [1] * 4
    with pytest.raises(RuntimeError, match="no more"):
        alternate(sides(True), 1)
    found["b"][1].counts["rows"] += 1
    assert table.unequal(found) == "a and b did unequal work in iteration 1: rows: 1 and 2"
    found["b"].pop()
    assert table.unequal(found) == "a and b did unequal work: iterations: 2 and 1"


def test_ctrl_c_ends_all_sides_once_the_one_that_runs_has_ended_its_iteration(monkeypatch):
    order, stopped, stop = [], threading.Event(), Turns.stop

    def side(name: str, clock: Clock) -> None:
        clock.start()
        for turn in range(3):
            order.append(f"{name}{turn}")
            if (name, turn) == ("a", 1):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                assert stopped.wait(60), "nobody told the sides"
                order.append("a1 ended")
            clock.done()

    monkeypatch.setattr(Turns, "stop", lambda turns: (stop(turns), stopped.set()))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    try:
        with pytest.raises(KeyboardInterrupt):
            alternate({name: lambda clock, name=name: side(name, clock) for name in "ab"}, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert order == ["a0", "b0", "a1", "a1 ended"]


def test_our_transformers_samples_all_replies_in_one_call(monkeypatch, tmp_path):
    asked = Work(prompts=2, group=33, prompt=4, spread=0, reply=2, rows=66, repeats=1)
    batches, generate = [], Qwen2ForCausalLM.generate
    work.write_model(asked.size, tmp_path)

    def counted(model, ids, **named):
        batches.append(len(ids))
        return generate(model, ids, **named)

    monkeypatch.setattr(Qwen2ForCausalLM, "generate", counted)
    ours.train(asked, tmp_path, "transformers", Clock(Turns(["ours"]), "ours"))
    assert batches == [66, 66]


def test_a_ratio_is_of_iterations_that_followed_each_other():
    assert table.ratio([1.0, 4.0, 9.0], [2.0, 4.0, 6.0]) == "1.00 (0.50 to 1.50)"


def test_every_letter_is_a_token_and_no_reply_can_end():
    read, asked = work.tokenizer(), Work(prompts=3)
    texts = asked.texts(0)
    assert [len(ids) for ids in read(text=texts)["input_ids"]] == [len(text) for text in texts]
    assert len(set(asked.texts(1)) | set(texts)) == 6
    assert (read.eos_token_id, read.pad_token_id < work.VOCABULARY) == (work.VOCABULARY, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["7B"], "7B: must be of 0.4M, 5M, 18M"),
        (["--group", "1"], "--group 1: must be at least 2"),
        (["--rows", "24"], "--rows 24: 128 replies (--prompts times --group) must be a multiple of 24"),
        (["--threads", "0"], "--threads 0: must be at least 1"),
        (
            ["--prompt", "4090"],
            "--prompt 4090 --spread 40 --reply 32: rows of up to 4162 tokens; at most 4096",
        ),
        (["--beta", "-1"], "--beta -1.0: must be at least 0"),
    ],
)
def test_work_that_cannot_be_done_is_refused(monkeypatch, capsys, words, said):
    monkeypatch.setattr(command, "installed", lambda _: "1")
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_without_trl_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(command, "installed", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        command.main([])
    assert ended.value.code == 2
    assert "TRL is not installed: make exports" in capsys.readouterr().err


def test_products_in_bfloat16_are_timed_in_both_ways(capsys, monkeypatch):
    monkeypatch.setattr(products, "SHAPES", [(16, 16), (8, 32)])
    assert all(time > 0 for time in products.measure((16, 16), steps=1, rounds=1))
    products.main([])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows] == ["matrix", "16 x 16", "8 x 32"]
