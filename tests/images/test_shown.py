"""Pictures of environments: steps name them, the store holds them, and hosts of any kind carry them."""

from __future__ import annotations

import pytest
from executor_cases import SAMPLING, FatedMaker, crew_of, fates, placed, settings
from image_cases import png
from scripted import Family, Levels, rollout_worker, task

from rlanything.core.ids import canonical_json
from rlanything.core.images import Image
from rlanything.core.records.rollouts import trajectory_to_json
from rlanything.core.types import Observation, Status
from rlanything.files.images import ImageStore
from rlanything.loop.episodes import OTHERWISE, LocalHost, Move
from rlanything.loop.rollout import Assignment
from rlanything.runs.executors.processes import ProcessPool

SHOWN = [Image(png(shade=k)) for k in range(5)]
NAMES = [image.sha256 for image in SHOWN]
WORK = [Assignment(k, task(k, steps=4, shows=True), 2) for k in range(3)]


def played(store):
    return rollout_worker(lambda _: "win", images=store).roll_out(WORK, SAMPLING)


def test_a_trajectory_names_what_was_shown_and_the_store_holds_it(tmp_path):
    store = ImageStore(tmp_path)
    for trajectory in played(store):
        assert trajectory.first_images == (NAMES[0],)
        assert [step.images for step in trajectory.steps] == [(name,) for name in NAMES[1:]]
        assert list(trajectory.images) == NAMES
    assert [store.get(name) for name in NAMES] == SHOWN
    assert len(list(tmp_path.rglob("*.png"))) == len(NAMES)


def test_without_a_store_nothing_is_named_that_cannot_be_found():
    assert not any(list(trajectory.images) for trajectory in played(None))


def test_the_text_of_records_is_the_same_with_and_without_pictures(tmp_path):
    def texts(trajectories):
        return [[step.observation for step in t.steps] for t in trajectories]

    assert texts(played(ImageStore(tmp_path))) == texts(played(None))


@pytest.mark.parametrize(
    ("screenshot", "words"),
    [(b"GIF89a", "no PNG"), (SHOWN[0].png[:-9], "cut off"), (bytes((16 << 20) + 1), "at most 16,777,216")],
    ids=["no PNG", "cut off", "too long"],
)
def test_a_screenshot_that_is_no_picture_is_an_error_of_its_episode(monkeypatch, tmp_path, screenshot, words):
    def seen(self, text):
        return Observation(text, (), (Image(screenshot if self.done == 2 else png()),))

    monkeypatch.setattr(Levels, "_seen", seen)
    for trajectory in played(ImageStore(tmp_path)):
        assert trajectory.status is Status.ENV_ERROR
        assert words in trajectory.error
        assert len(trajectory.steps) == 1


def test_an_episode_that_shows_something_else_when_it_is_played_again_is_not_gone_on_with():
    of = task(1, steps=4, shows=True)
    move = Move("e", of, 7, ("win", "win"), "win was done", 5.0, (NAMES[1],))
    assert LocalHost(Family()).play([move])[0].observation.images == (SHOWN[2],)
    other = Move("e", of, 7, ("win", "win"), "win was done", 5.0, (NAMES[3],))
    answer = LocalHost(Family()).play([other])[0]
    assert (answer.status, answer.error) == (Status.ENV_ERROR, OTHERWISE)


@pytest.mark.integration
def test_workers_that_die_give_the_pictures_and_records_of_this_process(tmp_path):
    def run(name):
        store = ImageStore(tmp_path / name)
        records = [canonical_json(trajectory_to_json(t)).encode() for t in played(store)]
        return b"".join([*records, *(store.get(name).png for name in NAMES)])

    folder = tmp_path / "fates"
    folder.mkdir()
    fates(folder, "fine", "before", "fine", "after")
    pool = ProcessPool(FatedMaker(folder))
    with crew_of(pool, config := settings(bundle=2)) as crew:
        assert placed(crew, config, lambda: run("workers")) == run("here")
    pool.close()
