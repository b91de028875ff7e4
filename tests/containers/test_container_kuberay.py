"""The example for KubeRay: the same image everywhere, a command of the project, and the address that Ray has there."""

import copy
import re

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
