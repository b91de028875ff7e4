"""Stage `train`: trains the seeds of one arm in parallel, each in one process with one thread."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.printable import say
from rlanything.files import atomic, hashes, locks
from rlanything.files.atomic import clear_leftovers
from rlanything.files.hashes import tree_hash
from rlanything.loop.share import wait_for_all
from rlanything.runs import families, provenance, timings
from rlanything.runs.build import fetch_commit
from rlanything.runs.fingerprint import Origin, checkpoints, made_from
from rlanything.runs.folder import RunFolder, place
from rlanything.runs.launch import first_process, workers
from rlanything.runs.layout import Layout, trained
from rlanything.runs.resuming import divisions, origins
from rlanything.runs.workers import side_by_side
from rlanything.stages import BEFORE_TRAINING, EVALUATE, EXAM, LABEL, TRAIN, of_arm
from rlanything.stages.measured import forget, measured


def train_arm(config: Config, root: Path, arm: str) -> None:
    """Train every seed of `arm` that is not finished. A killed stage resumes at its last iteration.

    Raises `ConfigError`, and `MachineError` when a worker was killed or a stored run is damaged."""
    source = config.arm(arm).reward_from
    _check_launch(config, arm)
    if not first_process():
        _run(config, root, arm)
        return
    takers = _takers(config, arm)
    # The lock of an exam names its model and not the arm that it examines, so no exam may run.
    apart = [*BEFORE_TRAINING, LABEL, f"{EXAM}*", *(of_arm(EVALUATE, name) for name in (arm, *takers))]
    apart += [of_arm(TRAIN, name) for name in (*takers, *([source] if source else []))]
    with locks.stage(root, of_arm(TRAIN, arm), root / "runs", apart=apart):
        _run(config, root, arm)


def _run(config: Config, root: Path, arm: str) -> None:
    Layout(root).check_bootstrap()
    _check_source(config, root, arm)
    for checkpoint in checkpoints(config, arm):
        fetch_commit(checkpoint, root)
    origin, layout = made_from(config, root, arm), Layout(root)
    seeds = range(config.train.seeds)
    folders = {seed: RunFolder(layout.live(origin.key, arm, seed)) for seed in seeds}
    live = layout.live(origin.key, arm, 0).parent
    if first_process():
        atomic.clear_removed(live.parent)
        notice = origins.begin(live, arm, origin)
        if notice:
            say(f"{arm}: {notice}")
        for path in (layout.provenance(arm), layout.starts(arm)):
            clear_leftovers(path)
        published = {seed: len(folder.published()) for seed, folder in folders.items()}
        provenance.record_start(live, root, published, families.programs(config), origin.code)
        divisions.correct(live, origin.key, lambda seed: _intact(folders[seed]))
    _train(config, root, origin, arm, [seed for seed in seeds if not folders[seed].finished.is_dir()])
    if config.train.processes > 1:
        wait_for_all(
            config.train.timeout_s
        )  # whoever is late still asks the live folder which seeds are finished
    if not first_process():
        return
    hashes.forget()
    origins.unchanged(config, root, arm, origin)()
    _forget_measured(config, layout, arm, folders)
    layout.provenance(arm).unlink(
        missing_ok=True
    )  # a kill before the next is written leaves none, and not another's
    place(list(folders.values()), layout.run(arm, 0).parent)
    provenance.write(config, root, arm, origin, live, divisions.record(live, origin.key))
    for seed, folder in folders.items():
        timings.keep(folder.path, layout.timings(arm, seed))
    atomic.remove(live.parent)  # its name is the key of this run, so it holds nothing else


def _forget_measured(config: Config, layout: Layout, arm: str, folders: Mapping[int, RunFolder]) -> None:
    """Remove what was measured of the arm's last runs, unless the new ones are the same to the byte."""
    found = measured(layout, (arm, *_takers(config, arm)))
    if not found:
        return
    before = sorted(layout.run(arm, 0).parent.glob("seed-*"))
    if {run.name: tree_hash(run) for run in before} == {
        folder.path.name: tree_hash(folder.finished) for folder in folders.values()
    }:
        return
    whose = f"other runs of {arm}" if before else f"runs of {arm} that are not here"
    forget(layout, found, arm, whose, retrain=False)


def _takers(config: Config, arm: str) -> list[str]:
    """The arms that are judged by this one's reward models."""
    return [name for name, other in config.arms.items() if other.reward_from == arm]


def _intact(folder: RunFolder) -> int:
    """How many intact iterations a seed has."""
    return len(folder.usable(lambda _: None))


def _train(config: Config, root: Path, origin: Origin, arm: str, seeds: Sequence[int]) -> None:
    """Train seeds in processes of their own, `train.workers` at a time. Under torchrun, train them one by one here."""
    data = config.model_dump(by_alias=True)
    side_by_side(train_seed, [(data, root, origin, arm, seed) for seed in seeds], workers(config.train))


def _check_source(config: Config, root: Path, arm: str) -> None:
    """Raise `ConfigError` unless the reward models of the arm in `reward_from` exist for every seed."""
    source = config.arm(arm).reward_from
    if source is not None:
        for seed in range(config.train.seeds):
            trained(config, root, source, seed, "reward")


def _check_launch(config: Config, arm: str) -> None:
    """Raise `ConfigError` unless torchrun started `train.devices` processes on each of `train.nodes` nodes."""
    train, here = config.train, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    everywhere = int(os.environ.get("WORLD_SIZE", here))
    command = f"--nproc-per-node {train.devices} -m rlanything train --arm {arm}`"
    if train.nodes > 1:
        place = f"--nnodes {train.nodes} --node-rank N --master-addr HOST --master-port PORT"
        command = f"{place} {command} on every node N from 0 to {train.nodes - 1}; HOST is the first of them"
    if train.devices != here:
        raise ConfigError(
            f"train.devices = {train.devices}, but {here} process(es) were started here; use `torchrun {command}"
        )
    if train.processes != everywhere:
        raise ConfigError(
            f"train.nodes = {train.nodes} of train.devices = {train.devices} are {train.processes} processes, but "
            f"{everywhere} were started; use `torchrun {command}"
        )


def train_seed(data: dict[str, object], root: Path, origin: Origin, arm: str, seed: int) -> None:
    """Train one seed in this process. data: the configuration as a plain mapping, which can be sent to a process.

    Its memory is free afterwards, on the GPU too: the next seed may be trained in the same process.
    """
    import torch

    from rlanything.config import parse
    from rlanything.runs.parts import RunId
    from rlanything.runs.seedrun import SeedRun

    config = parse(data)
    live = Layout(root).live(origin.key, arm, seed)
    started = time.monotonic()

    def tell(text: str) -> None:
        say(f"{arm} seed {seed}: {text}")

    SeedRun(config, RunId(root, arm, seed, live), tell, origins.unchanged(config, root, arm, origin)).run()
    gc.collect()  # Lightning's trainer and the module refer to each other
    torch.cuda.empty_cache()  # nothing where no GPU was used
    tell(f"finished in {time.monotonic() - started:.0f} s")
