"""What is wrong with a compose file, as sentences. The rules are those that this project's file could break."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from container_cases import EXTRAS, INSTRUCTIONS, TARGETS, expand

TOP = {"name", "services", "volumes", "networks", "secrets", "configs"}
SERVICE = {
    "image", "build", "command", "entrypoint", "environment", "volumes", "healthcheck", "depends_on", "profiles",
    "init", "deploy", "network_mode", "networks", "ports", "restart", "shm_size", "secrets", "user", "working_dir",
}  # fmt: skip
"""Keys that this project uses, or might; the specification has more."""
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|(^|_)KEY($|_)")
REQUIRED = re.compile(r"(?<!\$)\$\{\w+:?\?")
DURATION = re.compile(r"(\d+(us|ms|s|m|h))+")


def problems(data: dict[str, Any]) -> list[str]:
    """Everything that is wrong; an empty list where nothing is."""
    found = [f"unknown key {key}" for key in data if key not in TOP and not key.startswith("x-")]
    services = data["services"]
    used: set[str] = set()
    for name, service in services.items():
        found += [f"{name}: {text}" for text in _service(service, services)]
        used |= {volume.split(":")[0] for volume in service.get("volumes", []) if volume[0] not in "./~"}
    declared = set(data.get("volumes", {}))
    found += [f"volume {name} is not declared" for name in sorted(used - declared)]
    found += [f"volume {name} is not used" for name in sorted(declared - used)]
    # Compose fills in variables before it looks at profiles: a required one would be asked for by every service.
    found += [f"{word} is required of every profile" for word in REQUIRED.findall(json.dumps(data))]
    return found


def _service(service: dict[str, Any], services: dict[str, Any]) -> list[str]:
    found = [f"unknown key {key}" for key in service if key not in SERVICE]
    if "image" not in service and "build" not in service:
        found.append("neither image nor build")
    tag = expand(service.get("image", "x:1")).rpartition("/")[2].partition(":")[2]
    if tag in ("", "latest"):
        found.append("the image has no fixed tag")
    found += _build(service.get("build", {"target": TARGETS[-1]}))
    if not all(isinstance(word, str) for word in service.get("command", [])):
        found.append("a word of the command is no text")
    for key, value in service.get("environment", {}).items():
        if not isinstance(value, str):
            found.append(f"{key} is no text")
        elif SECRET.search(key) and not re.fullmatch(r"\$\{\w+:-\}", value):
            found.append(f"{key} is written here")
    for word in service.get("command", []):
        if "://" in str(word) and urlsplit(word.partition("=")[2]).password:
            found.append("a password is in the command")
    found += _dependencies(service, services)
    found += _health(service.get("healthcheck"))
    return found


def _build(build: dict[str, Any]) -> list[str]:
    found = [] if build.get("target") in TARGETS else [f"the Dockerfile has no stage {build.get('target')}"]
    declared = dict(re.findall(r"^ARG (\w+)=(.*)$", INSTRUCTIONS, flags=re.MULTILINE))
    for name, value in build.get("args", {}).items():
        if name not in declared:
            found.append(f"the Dockerfile has no ARG {name}")
        elif name == "EXTRAS":
            found += [f"the project has no extra {extra}" for extra in value.split() if extra not in EXTRAS]
        elif expand(value) != declared[name]:
            found.append(f"{name} has another default than in the Dockerfile")
    return found


def _dependencies(service: dict[str, Any], services: dict[str, Any]) -> list[str]:
    found = []
    needed = dict(service.get("depends_on", {}))
    mode = service.get("network_mode", "")
    if mode.startswith("service:"):
        needed.setdefault(mode.removeprefix("service:"), {"condition": "service_started"})
    for name, how in needed.items():
        if name not in services:
            found.append(f"there is no service {name}")
            continue
        if how.get("condition") not in CONDITIONS:
            found.append(f"unknown condition for {name}")
        if how.get("condition") == "service_healthy" and "healthcheck" not in services[name]:
            found.append(f"{name} has no healthcheck")
        if not set(service.get("profiles", [])) <= set(services[name].get("profiles", [])):
            found.append(f"{name} is not in the same profile")
    return found


def _health(check: dict[str, Any] | None) -> list[str]:
    if check is None:
        return []
    found = [] if check["test"][0] in ("CMD", "CMD-SHELL") else ["the healthcheck is no command"]
    times = [key for key in ("interval", "timeout", "start_period") if key in check]
    return found + [f"{key} is no duration" for key in times if not DURATION.fullmatch(check[key])]
