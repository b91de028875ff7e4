"""A run's folder, finished or on its way: what is in it, that the events explain the snapshots and decisions
follow the rule, what is not there."""

import shutil

import pytest
from buffer_cases import (
    ACCEPTED,
    EASIER,
    REJECTED,
    command,
    event,
    histories,
    house,
    record,
    relaxed,
    story,
    task,
    write_house,
    write_rollouts,
    write_story,
)
from hypothesis import given

from rlanything.buffer import (
    TaskBuffer,
    TaskBufferError,
    append_events,
    read_events,
    snapshot_path,
    write_snapshot,
)
from rlanything.buffer.views import diff
from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.find.runs import find_runs, open_run
from rlanything.buffer.views.history.verification import check_decision
from rlanything.core.adaptation import AcceptanceRule, outside_band
from rlanything.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path):
    return write_story(tmp_path / "runs" / "full" / "seed-0")


def test_open_run(run):
    opened = open_run(run)
    assert opened.iterations == (0, 1, 2, 3, 4)
    assert opened.at(2) == story()[2][2]
    assert opened.latest == story()[-1][2]
    assert len(opened.events) == 8
    assert [e.iteration for e in opened.events_before(2)] == [0, 0, 0, 1, 1]
    assert open_run(run / "buffer") == opened
    assert opened.header(4).accepted == 3


def test_the_events_explain_every_snapshot(run):
    opened = open_run(run)
    for iteration in opened.iterations:
        assert opened.replay(iteration) == opened.at(iteration)


@relaxed
@given(histories())
def test_replaying_events_over_v0_gives_the_snapshots(tmp_path_factory, history):
    start, events = history
    folder = tmp_path_factory.mktemp("run") / "buffer"
    buffer = TaskBuffer.start(start)
    record(folder, 0, buffer)
    for iteration in range(max((e.iteration for e in events), default=0) + 1):
        now = [e for e in events if e.iteration == iteration]
        buffer = buffer.apply(now)
        record(folder, iteration + 1, buffer, now)
    opened = open_run(folder.parent)
    for iteration in opened.iterations:
        assert (
            opened.replay(iteration).digest == opened.at(iteration).digest == opened.header(iteration).digest
        )
    assert opened.latest == buffer


def test_a_run_without_events_and_with_many_iterations(tmp_path):
    buffer = TaskBuffer.start([])
    for iteration in (10000, 0, 9999, 12):
        write_snapshot(buffer, snapshot_path(tmp_path, iteration))
    (tmp_path / "iter_1.jsonl.bak").touch()
    opened = open_run(tmp_path)
    assert opened.iterations == (0, 12, 9999, 10000)
    assert opened.events == ()
    with pytest.raises(TaskBufferError, match=r"no snapshot of iteration 5 \(there are 0 to 10000\)"):
        opened.at(5)


def test_what_is_no_run_is_said_so(tmp_path):
    with pytest.raises(TaskBufferError, match="nowhere: no such folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(TaskBufferError, match="no buffer there"):
        open_run(tmp_path)
    (tmp_path / "buffer").mkdir()
    with pytest.raises(TaskBufferError, match=r"buffer: empty, it has no snapshot iter_0000\.jsonl"):
        open_run(tmp_path)


def test_find_runs_sorts_by_number_and_leaves_hidden_folders_out(tmp_path):
    buffer = TaskBuffer.start([])
    for name in ("full/seed-10", "full/seed-2", ".cache/seed-0", "base/seed-0", "full/seed-2/old/seed-9"):
        record(tmp_path / name / "buffer", 0, buffer)
    names = [path.relative_to(tmp_path).as_posix() for path in find_runs(tmp_path)]
    assert names == ["base/seed-0", "full/seed-2", "full/seed-10"]
    assert find_runs(tmp_path / "full/seed-2") == [tmp_path / "full/seed-2"]
    assert find_runs(tmp_path / "missing") == []


@pytest.fixture
def on_its_way(tmp_path, monkeypatch):
    """The first of two iterations is published, the second one half written; beside it the finished run."""
    monkeypatch.chdir(tmp_path)
    write_house(tmp_path / "done")
    done = tmp_path / "done/runs/full/seed-0"
    write_rollouts(done)
    live = RunFolder(tmp_path / ".rla/live/1f/full/seed-0")
    live.recover(print)
    write_snapshot(house()[0], snapshot_path(live.path, 0))
    finished = open_run(done)

    def write(iteration, folder):
        happened = [e for e in finished.events if e.iteration == iteration]
        append_events(folder / "events.jsonl", happened, live.head(finished.at(0), iteration))
        head = read_events(folder / "events.jsonl").heads[-1]
        write_snapshot(finished.at(iteration + 1), folder / "buffer.jsonl", finished.at(0), events=head)
        shutil.copyfile(done / f"rollouts/iter_{iteration + 1:04d}.jsonl.gz", folder / "rollouts.jsonl.gz")

    live.publish(0, lambda folder: write(0, folder))
    (live.iterations / ".tmp-0001").mkdir()
    (live.iterations / ".tmp-0001" / "buffer.jsonl").write_text('{"half')
    return live, finished, lambda: live.publish(1, lambda folder: write(1, folder))


def test_it_is_read_as_the_run_that_it_will_be(on_its_way):
    live, finished, goes_on = on_its_way
    early = open_run(live.path)
    assert (early.iterations, early.latest, early.events) == (
        (0, 1),
        finished.at(1),
        finished.events_before(1),
    )
    goes_on()
    assert early.latest == finished.at(1), "what was opened stays as it was"
    assert len(early.events) == len(finished.events_before(1))
    late = open_run(live.path)
    assert (late.iterations, late.latest, late.events) == ((0, 1, 2), finished.latest, finished.events)
    assert live.buffer(1) == finished.latest


def test_every_command_takes_it(on_its_way, capsys):
    live, *_ = on_its_way
    name = live.path.relative_to(live.path.parents[4]).as_posix()
    assert find_runs(live.path.parents[2]) == [live.path]
    for words in (
        ["ls", ".rla/live"],
        ["ls", name],
        ["show", name, "3"],
        ["log", name],
        ["diff", name],
        ["verify", name],
        ["drift", name],
        ["diff", "done/runs/full/seed-0@0", f"{name}/iterations/0000/buffer.jsonl"],
    ):
        assert command(*words) == 0
    assert "every record holds" in capsys.readouterr().out


def test_an_iteration_that_is_gone_is_missed(on_its_way, capsys):
    live, _, goes_on = on_its_way
    goes_on()
    assert command("verify", "full/seed-0") == 0
    shutil.rmtree(live.iterations / "0000")
    assert open_run(live.path).iterations == (0, 2), "the others keep their numbers"
    assert command("verify", "full/seed-0") == 1
    assert "snapshot 1 is missing, and 2 is there" in capsys.readouterr().out


def test_a_run_in_training_has_the_name_that_it_will_have(on_its_way, capsys):
    live, finished, _ = on_its_way
    for name in ("full/seed-0", "runs/full/seed-0", "full"):
        assert find(name).buffer == finished.at(1)
    assert find("full/seed-0@0").iteration == 0
    shutil.copytree(".rla/live", ".rla/bold/.rla/live")
    (live.path.parents[3] / "bold/params.yaml").write_text("{}")
    assert find("bold").buffer == find("bold:full/seed-0").buffer == finished.at(1)
    assert command("ls") == 0
    assert "full/seed-0" in capsys.readouterr().out
    assert command("diff", "full/sed-0") == 2
    assert "nearest: full/seed-0" in capsys.readouterr().err
    shutil.copytree(live.path, ".rla/live/1f/full/seed-1")
    with pytest.raises(TaskBufferError, match="nearest: full/seed-1, full/seed-0"):
        find("full")
    write_house(live.path.parents[4])
    assert find("full/seed-0").buffer == finished.latest, "a finished run comes before one in training"


@pytest.fixture
def workspaces(tmp_path):
    """A project with two workspaces, `bold` with both runs and `calm` with one, and a trial: each has its own band."""
    (tmp_path / "params.yaml").write_text("adaptation: {alpha_low: 0.2, alpha_high: 0.8}\n")
    for place, low in ((".rla/bold", 0.4), (".rla/calm", 0.3), ("sweeps/band/trials/0001", 0.1)):
        write_house(tmp_path / place)
        (tmp_path / place / "params.yaml").write_text(f"adaptation: {{alpha_low: {low}, alpha_high: 0.8}}\n")
    shutil.rmtree(tmp_path / ".rla/calm/runs/full/seed-0")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "low"),
    [
        (".rla/bold/runs/full/seed-0", 0.4),
        (".rla/bold/runs/full/seed-0/buffer/iter_0001.jsonl", 0.4),
        ("bold:full/seed-0@1", 0.4),
        ("calm", 0.3),
        ("sweeps/band/trials/0001/runs/full/seed-1", 0.1),
        ("sweeps/band/trials/0001:full/seed-1", 0.1),
    ],
)
def test_a_run_is_judged_by_the_band_of_its_own_project(workspaces, name, low):
    assert find(name, workspaces).rule.alpha_low == low


def test_runs_of_two_workspaces_are_compared_by_their_names(workspaces, capsys):
    assert command("diff", "bold:full/seed-1", "calm:full/seed-1", root=workspaces) == 0
    said = capsys.readouterr().out
    assert said.startswith("bold:full/seed-1@2 -> calm:full/seed-1@2\n")
    assert "inside the band [0.40, 0.80]:" in said
    assert "-> [0.30, 0.80]:" in said
    assert find(find("bold:full/seed-1@1", workspaces).name, workspaces).iteration == 1
    page = diff("calm", "bold", root=workspaces)
    assert (page["a"]["name"], page["b"]["name"]) == ("calm:full/seed-1@2", "bold:full/seed-1@2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", "bold", "calm"], "take bold:full/seed-0 or bold:full/seed-1"),
        (["show", "bold:full/sed-1", "0"], "no run 'full/sed-1' in bold; nearest: full/seed-1"),
        (["diff", "bolt:full/seed-1", "calm"], "no run 'bolt:full/seed-1'; nearest: bold"),
    ],
)
def test_a_name_that_no_workspace_has_is_answered_with_the_nearest(workspaces, capsys, words, message):
    assert command(*words, root=workspaces) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("words", [["ls", "new"], ["show", "new", "0"], ["diff", "new:full/seed-0"]])
def test_a_workspace_without_runs_is_said_to_have_none(workspaces, capsys, words, empty):
    (workspaces / ".rla/new").mkdir()
    (workspaces / ".rla/new/params.yaml").write_text("")
    if empty:
        (workspaces / ".rla/new/runs").mkdir()
    assert command(*words, root=workspaces) == 2
    say = "`rlanything --workspace new"
    said = f"workspace 'new' has no run yet; {say} train --arm full` makes one, after {say} tasks` and "
    assert f"{said}{say} bootstrap`\n" in capsys.readouterr().err


def test_a_run_that_was_started_and_published_nothing(tmp_path):
    live = RunFolder(tmp_path / "run")
    live.recover(print)
    write_snapshot(house()[0], snapshot_path(live.path, 0))
    assert (open_run(live.path).latest, open_run(live.path).events) == (house()[0], ())


BUFFER = TaskBuffer.start([task(1)])


def decided(kind, before: float, after: float | None, reason: str = ""):
    return event(BUFFER, 0, kind, task(2), way=EASIER, before=before, after=after, reason=reason)


@pytest.mark.parametrize(
    "stated",
    [
        decided(ACCEPTED, 0.0, 0.5),
        decided(REJECTED, 0.0, 0.875, outside_band(0.0, 0.875)),
        decided(REJECTED, 0.0, None, "every rollout crashed"),
        decided(REJECTED, 0.0, 0.5, "no two different programs pass all of its tests"),
    ],
)
def test_decisions_that_hold(stated):
    check_decision(stated, AcceptanceRule())


@pytest.mark.parametrize(
    ("stated", "must"),
    [
        (decided(REJECTED, 0.0, 0.5, outside_band(0.0, 0.5)), "accepted"),
        (decided(REJECTED, 0.0, 0.5), "accepted"),
        (decided(ACCEPTED, 0.0, 0.875), "rejected"),
        (decided(ACCEPTED, 0.0, 0.875, "the tests agree"), "rejected"),
    ],
)
def test_decisions_that_do_not(stated, must):
    with pytest.raises(TaskBufferError, match=rf"easier 0\.000 -> 0\.\d+ must be {must} by the strict rule"):
        check_decision(stated, AcceptanceRule())
