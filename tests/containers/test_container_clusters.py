"""The examples for Slurm and Kubernetes: structure, commands, and what the batch script does when stopped."""

import copy
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_rules import directive_problems, directives, manifest_problems
from container_cases import ROOT, TARGETS, check_command
from torch.distributed.run import get_args_parser

from rlanything.cli import main

MANIFESTS = sorted((ROOT / "containers" / "kubernetes").glob("*.yaml"))
DOCUMENTS = [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text())]
JOBS = {document["metadata"]["name"]: document for document in DOCUMENTS if document["kind"] == "Job"}
BATCH = ROOT / "containers" / "slurm" / "train.sbatch"
NODES = BATCH.with_name("nodes.sbatch")


def pod(job: dict[str, Any]) -> dict[str, Any]:
    return job["spec"]["template"]["spec"]


def container(job: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod(job)["containers"]
    return only


def test_nothing_is_wrong():
    assert set(JOBS) == {"rlanything-smoke", "rlanything-train"}
    assert {d["metadata"]["name"]: manifest_problems(d) for d in DOCUMENTS if manifest_problems(d)} == {}


DAMAGE: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda j: j.update(apiVersion="v1"), "Job is of batch/v1"),
    (lambda j: j["metadata"].update(name="RL_Anything"), "no valid name"),
    (lambda j: j["spec"].pop("backoffLimit"), "no backoffLimit"),
    (lambda j: pod(j).update(restartPolicy="Always"), "a job's restartPolicy"),
    (lambda j: pod(j).update(restartPolicy="OnFailure"), "podFailurePolicy needs"),
    (lambda j: pod(j)["securityContext"].update(runAsNonRoot=False), "it may run as root"),
    (lambda j: pod(j)["securityContext"].pop("seccompProfile"), "no seccompProfile"),
    (lambda j: container(j)["securityContext"].pop("capabilities"), "train: it may gain rights"),
    (lambda j: container(j)["resources"]["limits"].pop("memory"), "train: no limit of memory"),
    (lambda j: container(j).update(image="rlanything"), "train: the image has no fixed tag"),
    (lambda j: container(j)["env"].append({"name": "HF_TOKEN", "value": "hf_x"}), "train: HF_TOKEN is written here"),
    (lambda j: pod(j).update(volumes=[]), "volume results"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[said for _, said in DAMAGE])
def test_what_is_wrong_is_found(damage, said):
    job = copy.deepcopy(JOBS["rlanything-train"])
    damage(job)
    assert any(text.startswith(said) for text in manifest_problems(job)), manifest_problems(job)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: f"{d['kind']}-{d['metadata']['name']}")
def test_the_schema_of_kubernetes_accepts_it(document):
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="make lint-containers installs it"
    )
    newest = kubernetes_validate.latest_version()
    kubernetes_validate.validate(document, newest, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**document, "spek": {}}, newest, strict=True)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_runs_an_image_and_a_command_of_the_project(job):
    check_command(container(job)["command"])
    assert container(job)["image"].rpartition(":")[2] in TARGETS
    assert pod(job)["securityContext"]["runAsUser"] == 1000, "the user of the image"


def test_the_training_keeps_what_it_makes_and_goes_on_after_an_eviction():
    job = JOBS["rlanything-train"]
    (volume,) = pod(job)["volumes"]
    claims = [d["metadata"]["name"] for d in DOCUMENTS if d["kind"] == "PersistentVolumeClaim"]
    assert volume["persistentVolumeClaim"]["claimName"] in claims
    (mount,) = container(job)["volumeMounts"]
    command = container(job)["command"][-1]
    scale = re.search(r"SCALE=(\S+)", command)
    assert scale is not None
    dry = subprocess.run(
        ["make", "--dry-run", "repro", scale[0]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert f"cd .rla/{scale[1]} && " in dry
    assert mount["mountPath"] == "/app/.rla"
    assert f"rm -f .rla/{scale[1]}/.dvc/tmp/rwlock" in command
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert container(job)["resources"]["limits"]["nvidia.com/gpu"] == "1"


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (BATCH, {"nodes": "1", "ntasks": "1", "gpus-per-node": "1"}),
        (NODES, {"nodes": "2", "ntasks-per-node": "1", "gpus-per-node": "8"}),
    ],
)
def test_a_batch_script_is_bash_and_its_options_are_those_of_sbatch(script, asked):
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text()
    assert directive_problems(text) == []
    head = directives(text)
    assert asked.items() <= head.items()
    assert "requeue" in head
    assert head["open-mode"] == "append", "a job that is queued again must not empty its log"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--nodes=1", "--node=1", "unknown option node"),
        ("--time=24:00:00", "--time=24h", "time = 24h"),
        ("--mem=96G", "--mem=96 G", "mem = 96 G"),
        ("set -euo pipefail", "set -euo pipefail\n#SBATCH --mem=1G", "a line is not read"),
    ],
)
def test_a_wrong_option_is_found(old, new, said):
    text = BATCH.read_text()
    assert old in text
    assert any(problem.startswith(said) for problem in directive_problems(text.replace(old, new)))


SEVERAL = {
    "SLURM_NNODES": "2",
    "SLURM_NODEID": "0",
    "SLURM_JOB_NODELIST": "node-[a-b]",
    "SLURM_GPUS_ON_NODE": "8",
}
"""What Slurm tells a job of two nodes. The batch script runs on the first."""
SRUN = """
while [[ $1 == --* ]]; do shift; done
for ((node = 1; node < ${SLURM_NNODES:-1}; node++)); do SLURM_NODEID=$node "$@" & done
SLURM_NODEID=0 "$@"
code=$?; wait; exit $code
"""
"""Runs its command once for each node, as for one task a node."""
TRAINING = ("train", "--arm", "full")
HOSTS = '[ "$1" != show ] || printf "%s\\n" node-a node-b'


@pytest.fixture
def cluster(tmp_path) -> Path:
    """A folder with programs that write down how they are called; `srun` runs what it is given, as Slurm's does."""
    work = "sleep ${SECONDS_OF_WORK:-0}; exit ${CODE:-0}"
    for name, does in (("srun", SRUN), ("make", work), ("torchrun", work), ("apptainer", ":"),
                       ("scontrol", HOSTS)):  # fmt: skip
        words = f'printf "%s\\n" "{name} $*" >> "{tmp_path}/calls"'
        (tmp_path / name).write_text(f"#!/bin/bash\n{words}\n{does}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def environment(cluster: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("SCALE", "SET", "IMAGE")}
    path = f"{cluster}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "SLURM_SUBMIT_DIR": str(cluster), "SLURM_JOB_ID": "7", **more}


def calls(cluster: Path) -> list[str]:
    return (cluster / "calls").read_text().splitlines()


@pytest.mark.parametrize("code", [0, 3])
def test_the_batch_script_trains_and_ends_as_the_training_does(cluster, code):
    done = subprocess.run(["bash", str(BATCH)], env=environment(cluster, CODE=str(code)), check=False)
    assert done.returncode == code
    assert calls(cluster) == ["srun make repro SCALE=single-gpu SET=", "make repro SCALE=single-gpu SET="]
    check_command(calls(cluster)[1].split())


def test_the_batch_script_runs_in_an_image(cluster):
    subprocess.run(["bash", str(BATCH)], env=environment(cluster, IMAGE="gpu.sif", SCALE="smoke"), check=True)
    assert calls(cluster)[1] == (
        f"apptainer exec --nv --bind {cluster}:/app --pwd /app gpu.sif "
        "make repro SCALE=smoke SET= --old-file=/opt/venv/.installed"
    )


@pytest.mark.parametrize(("script", "more"), [(BATCH, {}), (NODES, SEVERAL)])
def test_a_batch_script_is_queued_again_before_its_time_is_up(cluster, script, more):
    work = subprocess.Popen(
        ["bash", str(script), *TRAINING],
        env=environment(cluster, SECONDS_OF_WORK="30", **more),
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 20
        launches = int(more.get("SLURM_NNODES", "1"))  # a late one would write behind Slurm's call
        while not (cluster / "calls").exists() or launches > sum(
            x.startswith(("make ", "torchrun ")) for x in calls(cluster)
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert directives(script.read_text())["signal"].startswith("B:USR1@"), "Slurm signals the shell alone"
        work.send_signal(signal.SIGUSR1)
        assert work.wait(timeout=20) == 0
        assert calls(cluster)[-1] == "scontrol requeue 7"
    finally:
        os.killpg(work.pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("command", [TRAINING, ("bootstrap",), ("evaluate", "--arm", "base_cooled")])
def test_the_script_for_several_nodes_starts_one_launch_on_each_with_its_own_rank(cluster, command, code):
    given = environment(cluster, CODE=str(code), **SEVERAL)
    done = subprocess.run(["bash", str(NODES), *command], env=given, check=False)
    assert done.returncode == code
    launched = [line.split()[1:] for line in calls(cluster) if line.startswith("torchrun ")]
    args = [get_args_parser().parse_args(words) for words in launched]
    assert sorted(one.node_rank for one in args) == [0, 1]
    assert {(one.nnodes, one.nproc_per_node, one.master_addr, one.master_port) for one in args} == {
        ("2", "8", "node-a", 20007)
    }
    for one in args:
        assert (one.module, one.training_script) == (True, "rlanything")
        assert tuple(one.training_script_args) == command
        check_command(["rlanything", *one.training_script_args])


def test_the_script_for_several_nodes_runs_in_an_image(cluster):
    run = environment(cluster, IMAGE="gpu.sif", **SEVERAL)
    subprocess.run(["bash", str(NODES), *TRAINING], env=run, check=True)
    inside = [line for line in calls(cluster) if line.startswith("apptainer ")]
    assert len(inside) == 2
    assert all(
        f"exec --nv --bind {cluster}:/app --pwd /app gpu.sif bash -c exec torchrun" in x for x in inside
    )


def test_the_script_for_several_nodes_asks_which_command_is_meant(cluster):
    given = environment(cluster, **SEVERAL)
    done = subprocess.run(["bash", str(NODES)], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "which command?" in done.stderr
    assert not (cluster / "calls").exists()


@pytest.mark.parametrize(("script", "more"), [(BATCH, {}), (NODES, SEVERAL)])
def test_outside_slurm_a_script_says_how_to_start_it(cluster, script, more):
    left = {name: value for name, value in environment(cluster, **more).items() if name != "SLURM_SUBMIT_DIR"}
    done = subprocess.run(["bash", str(script)], env=left, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"sbatch containers/slurm/{script.name}" in done.stderr
    assert shutil.which("make", path=str(cluster))
    assert not (cluster / "calls").exists()


def test_the_processes_of_a_node_have_the_cores_that_the_job_asks_for(cluster):
    """`srun` takes them from SRUN_CPUS_PER_TASK alone."""
    (cluster / "srun").write_text(f'#!/bin/bash\nprintf "%s" "$SRUN_CPUS_PER_TASK" > "{cluster}/cores"\n')
    more = environment(cluster, SLURM_CPUS_PER_TASK="64", **SEVERAL)
    subprocess.run(["bash", str(NODES), *TRAINING], env=more, check=True, timeout=60)
    assert (cluster / "cores").read_text() == "64"


def test_the_example_of_several_nodes_fits_the_device_that_it_names_and_the_memory_of_the_job(capsys):
    text = NODES.read_text()
    (written,) = re.findall(r"rlanything config write (.*)", text)
    device, expected = re.search(r"\((H\d+), (--episode-share [\d.]+ --reply-share [\d.]+)\)", text).groups()
    words = ["plan", *written.split(), "--arm", "full", "--device", device, *expected.split()]
    assert main(["--root", str(ROOT), *words]) == 0
    out = capsys.readouterr().out
    assert "\nfits: " in out
    (needed,) = re.findall(r"([\d.]+) GB on a node of 8", out)
    assert float(needed) * 1e9 < int(directives(text)["mem"].removesuffix("G")) * 2**30
