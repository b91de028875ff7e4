"""compose.yaml: services that can start, commands that the project has, and no password inside."""

import copy
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from compose_rules import problems
from container_cases import ROOT, check_command, check_make, expand

from rlanything.planning import compose

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


def words(name: str) -> list[str]:
    return [expand(word) for word in SERVICES[name]["command"]]


def option(name: str, flag: str) -> str:
    (found,) = [word.partition("=")[2] for word in words(name) if word.startswith(f"{flag}=")]
    return found


def test_nothing_is_wrong():
    assert set(SERVICES) == {
        "repro",
        "postgres",
        "sweep",
        "vllm",
        "served",
        "train",
        "ray-head",
        "ray-worker",
    }
    assert problems(COMPOSE) == []


DAMAGE: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda s: s["repro"].pop("image") and s["repro"].pop("build"), "repro: neither image nor build"),
    (lambda s: s["postgres"].update(image="postgres"), "postgres: the image has no fixed tag"),
    (lambda s: s["repro"]["build"].update(target="tpu"), "repro: the Dockerfile has no stage tpu"),
    (lambda s: s["vllm"]["build"]["args"].update(CUDA="13"), "vllm: the Dockerfile has no ARG CUDA"),
    (lambda s: s["repro"]["build"]["args"].update(BASE="${BASE:-debian:12}"), "repro: BASE has another default"),
    (lambda s: s["sweep"].update(depends_on={"database": {}}), "sweep: there is no service database"),
    (lambda s: s["postgres"].pop("healthcheck"), "sweep: postgres has no healthcheck"),
    (lambda s: s["postgres"].update(profiles=["other"]), "sweep: postgres is not in the same profile"),
    (lambda s: s["served"].update(network_mode="service:llm"), "served: there is no service llm"),
    (lambda s: s["sweep"]["environment"].update(PGPASSWORD="hunter2"), "sweep: PGPASSWORD is written here"),
    (lambda s: s["sweep"]["environment"].update(PGPASSWORD="${P:-hunter2}"), "sweep: PGPASSWORD is written here"),
    (lambda s: s["sweep"]["environment"].update(PGUSER="${U:?set it}"), "${U:? is required of every profile"),
    (lambda s: s["vllm"]["environment"].update(HF_TOKEN="hf_x"), "vllm: HF_TOKEN is written here"),
    (lambda s: s["sweep"].update(command=["--storage=postgresql://a:b@c/d"]), "sweep: a password is in the command"),
    (lambda s: s["repro"].update(volumes=["results:/app"]), "volume results is not declared"),
    (lambda s: s["repro"].update(comand=["make"]), "repro: unknown key comand"),
    (lambda s: s["vllm"]["environment"].update(HF_HUB_OFFLINE=0), "vllm: HF_HUB_OFFLINE is no text"),
    (lambda s: s["vllm"]["healthcheck"].update(interval="ten"), "vllm: interval is no duration"),
    (lambda s: s["ray-head"]["build"]["args"].update(EXTRAS="rays"), "ray-head: the project has no extra rays"),
    (lambda s: s["ray-head"]["environment"].update(RAY_AUTH_TOKEN="x"), "ray-head: RAY_AUTH_TOKEN is written here"),
    (lambda s: s["ray-head"].pop("healthcheck"), "ray-worker: ray-head has no healthcheck"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[said for _, said in DAMAGE])
def test_what_is_wrong_is_found(damage, said):
    data = copy.deepcopy(COMPOSE)
    damage(data["services"])
    assert any(text.startswith(said) for text in problems(data)), problems(data)


@pytest.mark.parametrize("name", ["repro", "sweep", "served", "train", "ray-head", "ray-worker"])
def test_the_project_has_the_command(name):
    check_command(words(name))


@pytest.mark.parametrize(
    "command",
    [
        ["make", "repo"],
        ["make", "repro", "SIZE=smoke"],
        ["rlanything", "swep"],
        ["ls"],
        ["ray", "begin"],
        ["ray", "start", "--heads"],
    ],
)
def test_a_wrong_command_is_found(command):
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        check_command(command)


def test_overrides_without_effect_are_found():
    with pytest.raises(subprocess.CalledProcessError):  # make refuses them
        check_make(["repro", "SET=seed=1"])


def test_the_sweep_asks_the_database_that_is_there():
    address = urlsplit(option("sweep", "--storage"))
    environment = SERVICES["postgres"]["environment"]
    assert address.scheme == "postgresql+psycopg"
    assert address.hostname in SERVICES["sweep"]["depends_on"]
    assert address.username == environment["POSTGRES_USER"]
    assert address.path == f"/{environment['POSTGRES_DB']}"
    assert SERVICES["sweep"]["environment"]["PGPASSWORD"] == environment["POSTGRES_PASSWORD"]
    assert SERVICES["postgres"]["healthcheck"]["test"][1:] == [
        "pg_isready", "-U", environment["POSTGRES_USER"], "-d", environment["POSTGRES_DB"],
    ]  # fmt: skip


def test_the_training_runs_on_the_head_of_the_cluster_that_the_workers_join():
    """Of one image, with one token. Ray asks that a training runs on a node of its cluster."""
    head, worker = SERVICES["ray-head"], SERVICES["ray-worker"]
    script = words("ray-head")[2]
    needed, start, *_ = map(shlex.split, script.split(" && "))
    assert needed[1].startswith("${RAY_AUTH_TOKEN:?")
    chosen = re.search(r"SET='(.*)'", script)
    assert chosen is not None
    executor = compose.compose(["scale=smoke", *chosen[1].split()], ROOT)["executor"]
    assert {"--head", "--num-cpus=0"} <= set(start)
    (port,) = [word.partition("=")[2] for word in start if word.startswith("--port=")]
    address = f"ray-head:{port}"
    assert (executor["form"], executor["address"]) == ("ray", address)
    assert option("ray-worker", "--address") == address
    assert f"('ray-head', {port})" in head["healthcheck"]["test"][-1]
    assert executor["workers"] * executor["cpus"] <= int(option("ray-worker", "--num-cpus"))
    assert "--block" in worker["command"], "the container ends when its command does"
    for name in ("image", "build", "environment"):
        assert head[name] == worker[name]
    assert "ray" in head["build"]["args"]["EXTRAS"].split()
    assert not any("ports" in service for service in (head, worker))


def test_the_reward_model_is_asked_where_it_is_served():
    (chosen,) = [word.removeprefix("SET=") for word in words("served") if word.startswith("SET=")]
    values = dict(item.split("=", 1) for item in chosen.split() if "=" in item)
    address = urlsplit(values["endpoints.reward.base_url"])
    assert words("vllm")[:2] == ["vllm", "serve"]
    assert values["endpoints.reward.model"] == option("vllm", "--served-model-name")
    assert (address.hostname, str(address.port)) == (option("vllm", "--host"), option("vllm", "--port"))
    assert int(values["endpoints.reward.context"]) <= int(option("vllm", "--max-model-len"))
    assert SERVICES["served"]["network_mode"] == "service:vllm", "127.0.0.1 is the server's"
    assert f"{address.hostname}:{address.port}/health" in SERVICES["vllm"]["healthcheck"]["test"][-1]


@pytest.mark.parametrize("name", ["repro", "sweep", "served", "vllm", "train", "ray-head"])
def test_volumes_lie_where_the_image_lets_its_user_write(name):
    places = [volume.split(":")[1] for volume in SERVICES[name]["volumes"]]
    assert set(places) <= {"/app", "/app/.rla"}, "containers/project.sh gives these to the user"


def test_a_file_with_passwords_stays_here():
    for name in (".gitignore", ".dockerignore"):
        assert ".env" in (ROOT / name).read_text().splitlines()


@pytest.mark.skipif(
    "COMPOSE_SCHEMA" not in os.environ,
    reason="COMPOSE_SCHEMA names no compose-spec.json; docs/containers.md says where it is",
)
def test_the_schema_of_the_specification_accepts_it():
    jsonschema = pytest.importorskip("jsonschema", reason="make lint-containers installs it")
    schema = json.loads(Path(os.environ["COMPOSE_SCHEMA"]).read_text())
    jsonschema.validate(COMPOSE, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**COMPOSE, "services": {"repro": {"comand": "make"}}}, schema)
