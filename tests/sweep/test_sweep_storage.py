"""Where a study lies: a journal, SQLite or PostgreSQL, several processes at once, and databases that refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pytest
from sweep_cases import declared, make, write_results

from rlanything.core.errors import ConfigError
from rlanything.sweep.errors import SweepStopped
from rlanything.sweep.study.storage import storage_errors, without_password

ASKER = """
import sys, json
from pathlib import Path
from optuna.trial import TrialState
from sweep_cases import declared, make
board = make(declared(budget={"trials": 12}), Path(sys.argv[1]), sys.argv[2] or None)
taken = []
while True:
    with board.study.lock():
        trial = board.study.ask()
    if trial is None:
        break
    taken.append([trial.number, trial.user_attrs["sets"]])
    board.study.tell(trial.number, [trial.user_attrs["sets"]["signals.lambda"]], TrialState.COMPLETE)
print(json.dumps(taken))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


def ask_all(folder: Path, url: str | None, workers: int = 2) -> list[list[object]]:
    """What so many processes were given, together."""
    env = environment()
    words = [sys.executable, "-c", ASKER, str(folder), url or ""]
    with ThreadPoolExecutor(workers) as pool:
        run = [
            pool.submit(subprocess.run, words, env=env, capture_output=True, text=True, check=False)
            for _ in range(workers)
        ]
    ended = [r.result() for r in run]
    assert [r.returncode for r in ended] == [0] * workers, ended[0].stderr + ended[1].stderr
    return [taken for r in ended for taken in json.loads(r.stdout)]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of its own, which is stopped and removed afterwards."""
    pytest.importorskip("psycopg", reason="needs: pip install 'rlanything[sweep]'")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("needs a PostgreSQL server (Debian: apt-get install postgresql)")
    home = Path(tempfile.mkdtemp(prefix="pg"))
    runuser = shutil.which("runuser") or "/usr/sbin/runuser"  # not every PATH has its folder
    as_nobody = [runuser, "-u", "nobody", "--"] if os.getuid() == 0 else []
    if as_nobody:
        shutil.chown(home, "nobody")
    data = home / "data"

    def run(*words: str) -> None:
        subprocess.run([*as_nobody, *words], check=True, capture_output=True, cwd="/", timeout=120)

    run(str(found[-1]), "-D", str(data), "-U", "tester", "--auth=trust", "--no-sync")
    control = str(found[-1].with_name("pg_ctl"))
    options = f"-k {home} -c listen_addresses='' -c fsync=off"
    run(control, "-D", str(data), "-o", options, "-w", "-l", str(home / "log"), "start")
    try:
        yield f"postgresql+psycopg://tester@/postgres?host={home}"
    finally:
        run(control, "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(home)


def test_a_database_whose_trials_lie_elsewhere_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    make(declared(), tmp_path / "a", url)
    make(declared(), tmp_path / "a", url)
    with pytest.raises(
        ConfigError, match=r"its trials lie in another folder than .*/b; all workers share one"
    ):
        make(declared(), tmp_path / "b", url)


def test_a_new_study_never_takes_the_trials_of_another_one(tmp_path):
    """After `optuna delete-study`, and after a change of the storage."""
    url = f"sqlite:///{tmp_path}/study.db"
    first = make(declared(), tmp_path / "a", url)
    write_results(first.trial(0), first.sweep, {"signals.lambda": 1.0}, range(3))
    optuna.delete_study(study_name="case", storage=url)
    for again in (url, None):
        with pytest.raises(
            ConfigError, match=r"is new, but .*/a holds the trials of another study; remove it$"
        ):
            make(declared(), tmp_path / "a", again)
    shutil.rmtree(tmp_path / "a")
    make(declared(), tmp_path / "a", url)


def test_trials_alone_are_another_studys_and_a_start_that_was_killed_before_it_had_one_goes_on(tmp_path):
    first = make(declared(), tmp_path)
    (tmp_path / "study.journal").unlink()  # as if nothing but the mark had been written
    make(declared(), tmp_path)
    first.trial(0).mkdir(parents=True)
    for name in ("study.journal", "study.id"):
        (tmp_path / name).unlink()
    with pytest.raises(ConfigError, match="holds the trials of another study; remove it"):
        make(declared(), tmp_path)


@pytest.mark.long
@pytest.mark.integration
def test_two_processes_never_take_the_same_trial_from_a_journal(tmp_path):
    check(ask_all(tmp_path, None))


@pytest.mark.long
@pytest.mark.integration
def test_two_processes_never_take_the_same_trial_from_sqlite(tmp_path):
    check(ask_all(tmp_path, f"sqlite:///{tmp_path}/study.db"))


@pytest.mark.long
@pytest.mark.integration
def test_two_processes_never_take_the_same_trial_from_postgresql(tmp_path, postgres):
    check(ask_all(tmp_path, postgres))


@pytest.mark.integration
def test_a_server_that_is_started_again_is_not_noticed(tmp_path, postgres):
    """The connection that the study holds is cut from the server's side, as its restart does."""
    from sqlalchemy import create_engine, text

    board = make(declared(), tmp_path, postgres, "restarted")
    assert board.study.ask().number == 0
    cut = (
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where backend_type = 'client backend' and pid <> pg_backend_pid()"
    )
    engine = create_engine(postgres)
    with engine.connect() as connection:
        assert set(connection.execute(text(cut)).scalars()) == {True}
    engine.dispose()
    assert [t.state.name for t in board.study.trials()] == ["RUNNING", "WAITING"]


@pytest.mark.integration
def test_what_a_database_refuses_ends_the_sweep_with_a_message(tmp_path):
    from sqlalchemy import create_engine, text

    url = f"sqlite:///{tmp_path}/study.db"
    board = make(declared(), tmp_path, url)
    with create_engine(url).begin() as connection:
        connection.execute(text("drop table trial_values"))
    refusal = r"storage sqlite:.*no such table: trial_values; start the sweep again"
    with pytest.raises(SweepStopped, match=refusal), storage_errors(url):
        board.study.trials()


def check(taken: list[list[object]]) -> None:
    assert sorted(number for number, _ in taken) == list(range(12))
    assert len({json.dumps(sets, sort_keys=True) for _, sets in taken}) == 12


def test_a_database_that_is_not_there_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg", reason="needs: pip install 'rlanything[sweep]'")
    url = "postgresql+psycopg://me:secret@localhost:1/none"
    with pytest.raises(ConfigError) as caught:
        make(declared(), tmp_path, url)
    assert "secret" not in str(caught.value)
    assert "me:***@localhost:1" in str(caught.value)
    assert "secret" not in without_password(url)


@pytest.mark.parametrize("url", ["nonsense", "mysqlite:///x"])
def test_an_address_that_is_none_is_refused(tmp_path, url):
    with pytest.raises(ConfigError, match="storage"):
        make(declared(), tmp_path, url)


HOLDER = """
import sys, time
from pathlib import Path
from sweep_cases import declared, make
with make(declared(), Path(sys.argv[1])).study.lock():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.long
def test_a_slow_holder_keeps_the_lock_and_a_killed_one_loses_it(tmp_path):
    board = make(declared(), tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: board.study.lock().__enter__())
        with pytest.raises(TimeoutError):
            waiting.result(timeout=2)
        holder.kill()
        holder.wait()
        waiting.result(timeout=60)
