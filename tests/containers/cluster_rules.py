"""What is wrong with a Kubernetes manifest or the head of a Slurm script, as sentences."""

import re
from typing import Any

KINDS = {"Job": "batch/v1", "PersistentVolumeClaim": "v1"}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
QUANTITY = re.compile(r"\d+(m|Ki|Mi|Gi|Ti)?")
DIRECTIVES = {
    "job-name": r"[\w-]+",
    "nodes": r"\d+",
    "ntasks": r"\d+",
    "ntasks-per-node": r"\d+",
    "gpus-per-node": r"(\w+:)?\d+",
    "cpus-per-task": r"\d+",
    "mem": r"\d+[KMGT]",
    "time": r"(\d+-)?\d+:\d\d:\d\d",
    "requeue": r"",
    "open-mode": r"append|truncate",
    "output": r"\S+",
    "signal": r"B:[A-Z0-9]+@\d+",
}
"""Options of sbatch that examples use, and what may stand behind them."""


def manifest_problems(data: dict[str, Any]) -> list[str]:
    """Everything that is wrong with one document; an empty list where nothing is."""
    kind = data.get("kind", "")
    if kind not in KINDS:
        return [f"unknown kind {kind}"]
    found = [] if data.get("apiVersion") == KINDS[kind] else [f"{kind} is of {KINDS[kind]}"]
    if not NAME.fullmatch(data.get("metadata", {}).get("name", "")):
        found.append("no valid name")
    return found + (_job(data["spec"]) if kind == "Job" else _claim(data["spec"]))


def _claim(spec: dict[str, Any]) -> list[str]:
    found = [] if spec.get("accessModes") else ["no accessModes"]
    size = spec.get("resources", {}).get("requests", {}).get("storage", "")
    return found if QUANTITY.fullmatch(size) else [*found, "no size"]


def _job(spec: dict[str, Any]) -> list[str]:
    found = [] if isinstance(spec.get("backoffLimit"), int) else ["no backoffLimit"]
    pod = spec["template"]["spec"]
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        found.append("a job's restartPolicy is Never or OnFailure")
    if "podFailurePolicy" in spec and pod.get("restartPolicy") != "Never":
        found.append("podFailurePolicy needs restartPolicy Never")
    return found + pod_problems(pod)


def pod_problems(pod: dict[str, Any]) -> list[str]:
    """What is wrong with the rights, limits and volumes of a pod."""
    found = []
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        found.append("it may run as root")
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        found.append("no seccompProfile")
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    mounted = set()
    for container in pod["containers"]:
        found += [f"{container['name']}: {text}" for text in _container(container)]
        mounted |= {mount["name"] for mount in container.get("volumeMounts", [])}
    return found + [f"volume {name} is mounted or declared only" for name in sorted(volumes ^ mounted)]


def _container(container: dict[str, Any]) -> list[str]:
    found = []
    if container.get("image", "").rpartition("/")[2].partition(":")[2] in ("", "latest"):
        found.append("the image has no fixed tag")
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False or context.get("capabilities") != {
        "drop": ["ALL"]
    }:
        found.append("it may gain rights")
    limits = container.get("resources", {}).get("limits", {})
    for name in ("cpu", "memory"):
        if not QUANTITY.fullmatch(str(limits.get(name, ""))):
            found.append(f"no limit of {name}")
    for entry in container.get("env", []):
        if not isinstance(entry.get("value", ""), str):
            found.append(f"{entry['name']} is no text")
        if re.search(r"TOKEN|PASSWORD|SECRET|(^|_)KEY($|_)", entry["name"]) and "value" in entry:
            found.append(f"{entry['name']} is written here")
    return found


def directives(script: str) -> dict[str, str]:
    """The options in the head of a batch script; sbatch stops reading at the first command."""
    found = {}
    for line in script.splitlines():
        if line and not line.startswith("#"):
            break
        if line.startswith("#SBATCH "):
            name, _, value = line.removeprefix("#SBATCH --").partition("=")
            found[name] = value
    return found


def directive_problems(script: str) -> list[str]:
    """Everything that is wrong with them."""
    head = directives(script)
    found = [f"unknown option {name}" for name in head if name not in DIRECTIVES]
    found += [f"{n} = {v}" for n, v in head.items() if n in DIRECTIVES and not re.fullmatch(DIRECTIVES[n], v)]
    if len(head) != script.count("#SBATCH"):
        found.append("a line is not read: it is there twice, or after a command")
    return found
