"""The example for KubeRay: the same image everywhere, a command of the project, and the address that Ray has there."""

import copy
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_rules import pod_problems
from container_cases import ROOT, check_command

from rlanything.planning import compose

JOB = yaml.safe_load((ROOT / "containers" / "kuberay" / "rayjob.yaml").read_text())


def pods(job):
    cluster = job["spec"]["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_it_is_a_job_of_ray_whose_pods_have_one_image_and_no_rights_to_gain():
    assert (JOB["apiVersion"], JOB["kind"]) == ("ray.io/v1", "RayJob")
    assert [pod_problems(pod) for pod in pods(JOB)] == [[], []]
    assert len({pod["containers"][0]["image"] for pod in pods(JOB)}) == 1
    assert JOB["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}


def test_what_is_wrong_with_a_pod_is_found():
    damaged = copy.deepcopy(pods(JOB)[1])
    damaged["containers"][0].pop("resources")
    assert pod_problems(damaged) == ["ray: no limit of cpu", "ray: no limit of memory"]


def test_its_command_is_one_of_the_project_and_names_the_ray_of_the_head():
    place, _, command = JOB["spec"]["entrypoint"].partition(" && ")
    assert place == "cd /app"
    check_command(["sh", "-c", command])
    chosen = re.search(r"SET='(.*)'", command)
    assert chosen is not None
    executor = compose.compose(["scale=smoke", *chosen[1].split()], ROOT)["executor"]
    assert (executor["form"], executor["address"]) == ("ray", "127.0.0.1:6379")
    workers = JOB["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    assert executor["workers"] * executor["cpus"] <= workers["replicas"] * 2


def test_its_version_of_ray_is_one_that_the_extra_allows():
    (allowed,) = re.findall(
        r"^ray = \[\"ray\[default\]>=([\d.]+),<3\"\]", (ROOT / "pyproject.toml").read_text(), re.M
    )
    version = JOB["spec"]["rayClusterSpec"]["rayVersion"]
    assert tuple(map(int, version.split("."))) >= tuple(map(int, allowed.split(".")))
    pinned = (ROOT / "containers" / "constraints-cpu.txt").read_text().splitlines()
    assert f"ray=={version}" in pinned, "the image has another one"
    assert "--build-arg EXTRAS=ray" in (ROOT / "docs" / "containers.md").read_text()


RESOURCE = yaml.safe_load("""
spec:
  versions:
    - name: v1alpha1
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: string}}}}
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              type: object
              required: [rayClusterSpec]
              properties:
                entrypoint: {type: string}
                shutdownAfterJobFinishes: {type: boolean}
                ttlSecondsAfterFinished: {type: integer, format: int32}
                activeDeadlineSeconds: {type: integer, format: int32}
                backoffLimit: {type: integer, format: int32}
                rayClusterSpec:
                  type: object
                  properties:
                    rayVersion: {type: string}
                    authOptions: {type: object, properties: {mode: {type: string, enum: [disabled, token]}}}
                    headGroupSpec: &group
                      type: object
                      properties:
                        groupName: {type: string}
                        replicas: &count {type: integer, format: int32}
                        minReplicas: *count
                        maxReplicas: *count
                        rayStartParams: {type: object, additionalProperties: {type: string}}
                        template: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {}}
                    workerGroupSpecs: {type: array, items: *group}
""")
"""A small resource in the form of KubeRay's own: what `rayjob.yaml` has, but for the pods."""


def job_schema(resource: dict[str, Any]) -> dict[str, Any]:
    """The schema that a custom resource has for the version of `rayjob.yaml`, with unknown fields refused."""
    version = JOB["apiVersion"].partition("/")[2]
    (found,) = [each["schema"] for each in resource["spec"]["versions"] if each["name"] == version]
    return closed(found["openAPIV3Schema"])


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    found = dict(schema)
    if "properties" in schema:
        found["properties"] = {name: closed(part) for name, part in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.setdefault("additionalProperties", False)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = closed(schema[name])
    return found


def check_by(resource: dict[str, Any]) -> None:
    """Raise where the schema refuses the job, or takes a damaged one."""
    jsonschema = pytest.importorskip("jsonschema", reason="make lint-containers installs it")
    schema = job_schema(resource)
    jsonschema.validate(JOB, schema)
    for place, value in (("backoffLimit", "one"), ("entripoint", "ls"), ("rayClusterSpec", {"workers": []})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**JOB, "spec": {**JOB["spec"], place: value}}, schema)


def test_a_schema_in_the_form_of_a_custom_resource_accepts_it_and_finds_damage():
    check_by(RESOURCE)


@pytest.mark.skipif(
    "RAYJOB_SCHEMA" not in os.environ,
    reason="RAYJOB_SCHEMA names no ray.io_rayjobs.yaml; docs/containers.md says where it is",
)
def test_the_schema_of_kuberay_accepts_it():
    check_by(yaml.safe_load(Path(os.environ["RAYJOB_SCHEMA"]).read_text()))
