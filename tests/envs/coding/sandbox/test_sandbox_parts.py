"""The parts that need no box: the rule of equality, sessions, cleaning up, the filter."""

import json
import os
import random
import string
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.sandbox import Call, Job, JobResult, Limits, Outcome, Status, Stdio
from envs.coding.sandbox.backends.seccomp import compile_filter
from envs.coding.sandbox.frames import Arrivals, BoxLostError
from envs.coding.sandbox.inside.seal import FILTER_ENTRY
from envs.coding.sandbox.inside.wipe import wipe
from envs.coding.sandbox.judge import ENDS, BadReportError, same_text, same_value
from envs.coding.sandbox.session import ATTEMPTS, Session
from envs.coding.sandbox.worker import Worker

BLANKS = st.text(" \t\n\r\x0b\x0c\u00a0\u2003\u3000\x1c", min_size=1, max_size=3)
WORDS = st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), max_size=5)


@given(WORDS, st.lists(BLANKS, min_size=12, max_size=12))
def test_only_words_count(words, blanks):
    spread = "".join(blank + word for blank, word in zip(blanks, words, strict=False)) + blanks[-1]
    assert same_text(spread, " ".join(words))
    assert same_text(" ".join(words), spread)
    assert not same_text(spread, " ".join([*words, "x"]))


@given(st.text(), st.text())
def test_texts_are_equal_as_in_the_reference(one, other):
    assert same_text(one, other) == (" ".join(one.split()) == " ".join(other.split()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_values_are_equal_to_themselves_and_to_nothing_else(value):
    assert same_value(value, value)
    assert not same_value(value, [value])
    assert same_value([value], (value,))


def report(end="exit", code=0, out=b"", result=b"", stage=2):
    numbers = {"end": end, "code": code, "cpu": 0.1, "wall": 0.2, "stage": stage}
    return {**numbers, "out": out, "err": b"", "result": result}


@given(st.lists(st.sampled_from(["exit", "wrong", "raise", "lost", *ENDS]), max_size=60), st.booleans())
def test_a_session_ends_with_one_outcome_for_each_test(events, stop):
    """Whatever happens in between; only what happened to a test itself is put down to it."""
    tests = [Stdio(str(k), "yes") for k in range(4)]
    session = Session(Job("program", tests, stop_at_failure=stop), Limits())
    for event in [*events, *["exit"] * 20]:
        if session.done:
            break
        assert "yes" not in str(session.request())
        if event == "lost":
            session.lose("the box ended")
        elif event in ENDS:
            infrastructure = ENDS[event][0] is Status.INFRASTRUCTURE
            assert session.accept(report(event)) is not infrastructure
        else:
            session.accept(report(code=event == "raise", out=b"no" if event == "wrong" else b"yes"))
    outcomes = session.result().outcomes
    assert session.done
    assert len(outcomes) == 4 or (stop and outcomes[-1].status is not Status.OK)
    allowed = {"exit": Status.OK, "wrong": Status.WRONG, "raise": Status.ERROR, "lost": Status.INFRASTRUCTURE}
    possible = {allowed.get(e) or ENDS[e][0] for e in events} | {Status.OK, Status.SYNTAX}
    assert {outcome.status for outcome in outcomes} <= possible


def sent(session):
    """Standard input of the next request, after its program."""
    numbers, payload = session.request()
    assert numbers["limits"] == asdict(session.limits)
    assert payload.startswith(b"program")
    assert sum(numbers["sizes"]) == len(payload)
    return payload[len(payload) - numbers["sizes"][2] :].decode()


def test_a_request_is_tried_again():
    session = Session(Job("program", [Stdio("1", "yes"), Stdio("2", "yes")]), Limits())
    for _ in range(ATTEMPTS):
        assert sent(session) == "1"
        session.lose("the box ended")
        assert session.done is False
    assert sent(session) == "2"
    session.accept(report(out=b"yes"))
    first, second = session.result().outcomes
    assert (first.status, second.status) == (Status.INFRASTRUCTURE, Status.OK)


def test_without_output_it_is_still_told_why_the_box_failed():
    session = Session(Job("program", [Stdio("1"), Stdio("2")], keep_output=False), Limits())
    session.accept(report(out=b"long", result=b"longer"))
    for _ in range(ATTEMPTS):
        session.lose("the box ended")
    kept, failed = session.result().outcomes
    assert (kept.status, kept.output, kept.cpu_s) == (Status.OK, "", 0.1)
    assert (failed.status, failed.error) == (Status.INFRASTRUCTURE, f"the box ended ({ATTEMPTS} attempts)")


def test_neighbours_of_the_same_input_share_a_run_where_the_job_says_so():
    tests = [Stdio("1", "yes"), Stdio("1", "no"), Stdio("2", "yes"), Stdio("1", "yes")]
    session = Session(Job("program", tests, share_runs=True), Limits())
    asked = []
    while not session.done:
        asked.append(sent(session))
        session.accept(report(out=b"yes"))
    assert asked == ["1", "2", "1"]
    found = session.result().outcomes
    assert [o.status.value for o in found] == ["ok", "wrong", "ok", "ok"]
    assert [o.cpu_s for o in found] == [0.1, 0.0, 0.1, 0.1]


def test_a_shared_run_stops_at_the_first_failure_too():
    tests = [Stdio("1", "no"), Stdio("1", "yes"), Stdio("2", "yes")]
    session = Session(Job("program", tests, stop_at_failure=True, share_runs=True), Limits())
    session.accept(report(out=b"yes"))
    assert session.done
    assert [o.status.value for o in session.result().outcomes] == ["wrong"]


@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("exit", 1, Status.SYNTAX),
        ("signal", -11, Status.SYNTAX),
        ("cpu", -9, Status.TIMEOUT),
        ("memory", 91, Status.MEMORY),
    ],
)
def test_a_program_that_does_not_compile_is_compiled_once(end, code, status):
    session = Session(Job("program", [Stdio("1", "yes"), Stdio("2", "yes")]), Limits())
    session.accept(report(end, code, stage=1))
    assert session.done
    assert [(o.status, o.cpu_s) for o in session.result().outcomes] == [(status, 0.1), (status, 0.0)]


@pytest.mark.parametrize("broken", ["end", "code", "out", "err", "cpu", "wall", "result", "stage"])
def test_a_report_with_something_missing_is_none(broken):
    session = Session(Job("program", [Stdio("1", "yes")]), Limits())
    with pytest.raises(BadReportError):
        session.accept({key: value for key, value in report().items() if key != broken})
    with pytest.raises(BadReportError):
        session.accept({**report(), "end": "well"})
    for key, value in (("code", float("inf")), ("cpu", 10**400), ("wall", "long")):
        with pytest.raises(BadReportError):
            session.accept({**report(), key: value})
    for stage in (3, -1, True, "2", None):
        with pytest.raises(BadReportError):
            session.accept(report(stage=stage))


def test_a_call_is_asked_without_its_result():
    session = Session(Job("program", [Call("f", [1, "x"], ["secret"])]), Limits())
    numbers, payload = session.request()
    assert numbers == {"limits": asdict(Limits()), "sizes": [7, 15, 0]}
    assert payload == b'program["f", [1, "x"]]'


PIECES = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=9)), max_size=20)


@given(PIECES, st.integers(1, 7))
def test_frames_are_put_together_from_any_pieces(pieces, step):
    """Outputs come with the next frame of numbers, whatever the sizes in which their bytes arrive."""
    sent, expected, outputs = b"", [], {1: b"", 2: b"", 3: b""}
    for kind, data in pieces:
        body = data if kind else json.dumps({"n": len(sent)}).encode()
        if kind:
            outputs[kind] += body
        else:
            expected.append({"n": len(sent), "out": outputs[1], "err": outputs[2], "result": outputs[3]})
            outputs = {1: b"", 2: b"", 3: b""}
        sent += bytes([kind]) + len(body).to_bytes(4, "little") + body
    arrivals = Arrivals()
    found = [frame for k in range(0, len(sent), step) for frame in arrivals.add(sent[k : k + step])]
    assert found == expected


@pytest.mark.parametrize("sent", [b"\x04\1\0\0\0", b"\0\xff\xff\xff\xff", b"\0\0\0\0\0", b"\0\2\0\0\0[]"])
def test_what_is_no_frame_is_refused(sent):
    with pytest.raises(BoxLostError, match="no frame"):
        list(Arrivals().add(sent))


class Slow:
    """A box that takes a little of what it is sent."""

    def __init__(self):
        self.buffers, self.taken = [], bytearray()

    def ends(self):
        return 0, 0

    def send(self, data):
        self.buffers.append(data.obj)
        self.taken += data[:1000]
        return min(len(data), 1000)


class Lender:
    """A back end whose only box is given."""

    sealed = False

    def __init__(self, box):
        self.box = box

    def start(self):
        return self.box, {"settings": 1}


def test_what_is_sent_is_copied_once_whatever_its_size():
    box = Slow()
    worker = Worker(Lender(box))
    worker.start()
    worker._act({"sealed": True, "uid": 1})
    text = "0123456789" * 20_000
    worker.take(Session(Job("program", [Stdio(text)]), Limits()))
    while worker.ends()[1] is not None:
        worker.write()
    assert box.taken.endswith(b"program" + text.encode())
    assert len({id(buffer) for buffer in box.buffers}) == 1


def test_infrastructure_outweighs_every_other_status():
    bad = JobResult((Outcome(Status.WRONG), Outcome(Status.INFRASTRUCTURE), Outcome(Status.OK)))
    assert (bad.status, bad.passed) == (Status.INFRASTRUCTURE, 1)
    assert (
        JobResult((Outcome(Status.OK), Outcome(Status.WRONG), Outcome(Status.ERROR))).status is Status.WRONG
    )


def plant(folder, rng, depth):
    """A random tree of files, links and folders, some of them closed."""
    for _ in range(rng.randint(0, 4)):
        name = os.path.join(folder, bytes(rng.choices(b"\xff\xfe1 *\n" + string.ascii_letters.encode(), k=3)))
        kind = rng.choice(["file", "link", "loop", "fifo", "folder", "folder"])
        if os.path.lexists(name):
            continue
        if kind == "file":
            open(name, "wb").close()
        elif kind == "fifo":
            os.mkfifo(name)
        elif kind in ("link", "loop"):
            os.symlink(b"/outside" if kind == "link" else b"..", name)
        elif depth:
            os.mkdir(name)
            plant(name, rng, depth - 1)
            os.chmod(name, rng.choice([0, 0o100, 0o400, 0o700]))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_wiping_leaves_an_empty_folder_and_all_else_alone(tmp_path_factory, seed):
    folder, outside = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("outside")
    (outside / "file").write_text("stays")
    (folder / "out").symlink_to(outside)
    plant(os.fsencode(folder), random.Random(seed), 4)
    wipe(str(folder))
    assert list(folder.iterdir()) == []
    assert (outside / "file").read_text() == "stays"


@pytest.mark.long
def test_wiping_goes_deeper_than_a_path_may_be_long(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("folder", dir_fd=here)
        below = os.open("folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    wipe(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_filter_is_a_program():
    code = compile_filter()
    assert len(code) % FILTER_ENTRY == 0
    assert 50 < len(code) // FILTER_ENTRY < 4096
