"""Where environments run: what is refused before any work, and that nothing of it belongs to a run."""

import socket
from dataclasses import fields
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.config import ExecutorConfig, parse
from rlanything.core.errors import ConfigError
from rlanything.engines.vllm.served import settings
from rlanything.exams.answering import SIZES
from rlanything.planning import compose
from rlanything.runs.executors import cluster
from rlanything.runs.fingerprint import SERVED, run_config

ROOT = Path(__file__).parents[2]
PROCESSES, WEB = (parse(compose.compose([one], ROOT)) for one in ("executor=processes", "env=web"))
ANSWER, EPISODE = f"{PROCESSES.executor.timeout_s:g}", f"{PROCESSES.rollout.timeout_s:g}"
PAGE = WEB.env["timeout"]
REFUSED = {
    "executor=processes executor.workers=0": r"executor.workers = 0: Input should be greater than 0",
    "executor=processes +executor.address=a:1": r"address = 'a:1': only for form = 'ray'",
    "executor=ray executor.address=ray-head": r"address = 'ray-head': must be host:port",
    "executor=ray executor.address=ray-head:70000": r"address = 'ray-head:70000': must be host:port",
    'executor=ray executor.address="ray://head:10001"': r"Addresses of Ray's client \(ray://\) are not supported",
    "executor=processes executor.patience_s=2000": rf"patience_s = 2000 must be below timeout_s = {ANSWER}",
    "executor=processes executor.timeout_s=50": rf"timeout_s = 50: must be above rollout.timeout_s = {EPISODE}",
    f"train.devices=2 train.timeout_s={ANSWER}": rf"train.timeout_s = {ANSWER}: must be above executor.timeout_s = ",
    "adaptation.attempts=1001": r"adaptation.attempts = 1001: Input should be less than or equal to 1000",
    "train.seeds=1001": r"train.seeds = 1001: Input should be less than or equal to 1000",
    "env.timeout=61": rf"env.timeout = 61: must be at most rollout.timeout_s = {EPISODE}",
    "env=web rollout.timeout_s=30": rf"env.timeout = {PAGE}: must be at most rollout.timeout_s = 30",
    "executor=ray executor.cpus=-1": r"executor.cpus = -1",
    "executor.form=rya": r"executor.form = 'rya': Input should be 'inline', 'processes' or 'ray'",
}


@pytest.mark.parametrize("overrides", REFUSED)
def test_nonsense_is_refused_with_what_is_allowed(overrides):
    with pytest.raises(ConfigError, match=REFUSED[overrides]):
        parse(compose.compose(overrides.split(), ROOT))


def test_where_environments_run_is_no_part_of_a_run():
    inline, ray = (parse(compose.compose([f"executor={form}"], ROOT)) for form in ("inline", "ray"))
    assert inline.executor != ray.executor
    assert run_config(inline, "full") == run_config(ray, "full")


def test_how_long_processes_wait_for_each_other_is_no_part_of_a_run():
    short, long = (parse(compose.compose([f"train.timeout_s={s}"], ROOT)) for s in (60, 7200))
    assert short.train.processes == 1, "alone it waits for nobody"
    assert run_config(short, "full") == run_config(long, "full")


def test_where_servers_of_models_are_is_no_part_of_a_run():
    ours, given, *others = (
        parse(compose.compose(["engine=vllm_servers", *overrides], ROOT))
        for overrides in (
            (),
            ("engine.addresses=[http://a:1]", "engine.restarts=9"),
            ("engine.replicas=2",),
            ("engine.batch_invariant=true",),
        )
    )
    assert run_config(ours, "full") == run_config(given, "full")
    assert all(run_config(other, "full") != run_config(ours, "full") for other in others)
    assert not set(SERVED) & run_config(ours, "full")["engine"].keys()
    assert {*SERVED, "replicas", "batch_invariant"} == {field.name for field in fields(settings.Serving)}
    assert {*SERVED, "replicas"} <= set(SIZES)
    assert "batch_invariant" not in SIZES, "it changes results"


def test_everything_in_one_process_is_the_same_run():
    config = parse(compose.compose(["executor=ray", "train.workers=4"], ROOT))
    alone = config.in_one_process()
    assert (alone.executor.form, alone.train.workers) == ("inline", 1)
    assert run_config(alone, "full") == run_config(config, "full")


def test_a_missing_ray_is_named_with_the_extra_before_any_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    params = tmp_path / "params.yaml"
    compose.write(params, ["executor=ray"], ROOT)
    assert main(["--root", str(ROOT), "config", "check", str(params)]) == 2
    assert "Ray is not installed: pip install 'rlanything[ray]'" in capsys.readouterr().err
    assert main(["--root", str(ROOT), "--params", str(params), "train", "--arm", "full"]) == 2
    assert "Ray is not installed" in capsys.readouterr().err


def test_a_cluster_that_cannot_be_reached_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: object())
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens
        port = held.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"executor.address = '127.0.0.1:{port}': no connection"):
            cluster.check(ExecutorConfig(form="ray", address=f"127.0.0.1:{port}"))
        held.listen()
        cluster.check(ExecutorConfig(form="ray", address=f"127.0.0.1:{port}"))


@pytest.mark.parametrize("host", ["ray..head", "a" * 64])
def test_a_name_that_no_machine_can_have_is_refused_too(monkeypatch, host):
    monkeypatch.setattr(cluster, "find_spec", lambda name: object())
    with pytest.raises(ConfigError, match=rf"executor.address = '{host}:6379': no connection"):
        cluster.check(ExecutorConfig(form="ray", address=f"{host}:6379"))
