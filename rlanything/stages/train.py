"""Stage `train`: the seeds of one arm side by side, one process and one thread each."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rlanything.config import Config, ConfigError
from rlanything.core.ids import content_id
from rlanything.stages.build import first_process
from rlanything.stages.layout import Layout
from rlanything.stages.runfolder import RunFolder

INPUTS = ("data", "models")
CODE = ("config.py", "core", "buffer", "engines", "loop", "learn", "stages")


def run(config: Config, root: Path, arm: str) -> None:
    """Train every seed of `arm` that is not finished; a killed stage continues where it was. Raises `ConfigError`."""
    config.arm(arm)
    _check_launch(config, arm)
    key = fingerprint(config, root, arm)
    seeds = range(config.train.seeds)
    layout = Layout(root)
    folders = {seed: RunFolder(layout.live(key, arm, seed)) for seed in seeds}
    _train(config, root, key, arm, [seed for seed in seeds if not folders[seed].finished.is_dir()])
    if not first_process():
        return
    for seed, folder in folders.items():
        folder.place(layout.run(arm, seed))
    for folder in folders.values():
        folder.discard()


def _train(config: Config, root: Path, key: str, arm: str, seeds: Sequence[int]) -> None:
    """Every seed in a process of its own, `train.workers` at a time; under torchrun one after the other, here."""
    data = config.model_dump(by_alias=True)
    workers = 1 if "RANK" in os.environ else min(config.train.workers, len(seeds))
    if workers <= 1:
        for seed in seeds:
            train_seed(data, root, key, arm, seed)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        jobs = [pool.submit(train_seed, data, root, key, arm, seed) for seed in seeds]
        try:
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _check_launch(config: Config, arm: str) -> None:
    """Several devices share a run only when torchrun started one process for each. Raises `ConfigError`."""
    devices, started = config.train.devices, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if devices != started:
        raise ConfigError(
            f"train.devices = {devices}, but {started} process(es) were started here; use `torchrun --nproc-per-node "
            f"{devices} -m rlanything train --arm {arm}`"
        )


def train_seed(data: dict[str, object], root: Path, key: str, arm: str, seed: int) -> None:
    """One seed, in this process. `data` is the plain configuration (what crosses the process border)."""
    from rlanything.config import parse
    from rlanything.stages.seedrun import SeedRun, Where

    config = parse(data)
    live = Layout(root).live(key, arm, seed)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{arm} seed {seed}: {text}", file=sys.stderr, flush=True)

    SeedRun(config, Where(root, arm, seed, live), say).run()
    say(f"finished in {time.monotonic() - started:.0f} s")


def fingerprint(config: Config, root: Path, arm: str) -> str:
    """Names the run by everything it depends on, so that only the very same run is ever resumed."""
    relevant = config.model_dump(mode="json", exclude={"arms", "scale", "evaluate", "bootstrap", "tasks"})
    relevant["train"].pop("workers")
    package = Path(__file__).resolve().parents[1]
    code = [package / name for name in CODE] + [root / "envs"]
    files = [p for place in code for p in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    if config.arms[arm].reward_from is not None:
        files += sorted(p for p in (root / "runs" / str(config.arms[arm].reward_from)).rglob("*.safetensors"))
    files += [p for name in INPUTS for p in sorted((root / name).rglob("*")) if p.is_file()]
    files += sorted((root / config.model.prompts).glob("*.txt"))
    digests = [hashlib.sha256(p.read_bytes()).hexdigest() for p in files]
    curve = config.evaluate.model_dump(mode="json")
    return content_id(
        {"config": relevant, "arm": config.arms[arm].model_dump(), "curve": curve, "files": digests}
    )
