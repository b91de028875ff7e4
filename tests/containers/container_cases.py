"""What images and cluster examples call is checked with the project's own parsers."""

import re
import shlex
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

from rlanything.cli import build_parser
from rlanything.config import parse
from rlanything.planning import compose

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTRUCTIONS = re.sub(r"\\\n\s*", " ", "\n".join(x for x in DOCKERFILE.splitlines() if not x.startswith("#")))
TARGETS = re.findall(r"^FROM \S+ AS (\S+)$", INSTRUCTIONS, flags=re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ENDPOINTS = (ROOT / "experiments" / "engine" / "openai.yaml").is_file()
"""Whether this checkout has the engine that asks a served model."""


def expand(text: str) -> str:
    """A value of compose.yaml where no variable is set. `$$` stands for the sign itself."""
    return re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", text).replace("$$", "$")


def check_command(words: list[str]) -> None:
    """Raise where a command of a manifest is none of this project's."""
    program, *rest = words
    if program == "sh":
        assert rest[0] == "-c"
        assert len(rest) == 2
        subprocess.run(["sh", "-n", "-c", rest[1]], check=True)
        for part in rest[1].split(" && "):
            words = shlex.split(part.removeprefix("exec "))
            if words[0] not in ("rm", ":"):
                check_command(words)
    elif program == "rlanything":
        try:
            args = build_parser().parse_args(rest)
        except SystemExit as error:
            raise AssertionError(f"rlanything does not take {rest}") from error
        if hasattr(args, "file"):
            assert (ROOT / args.file).is_file(), args.file
    elif program == "make":
        check_make(rest)
    elif program == "ray":
        check_ray(rest)
    else:
        raise AssertionError(f"{program} is no program of the project")


def check_make(words: list[str]) -> None:
    """Targets and variables exist, and what they compose is a valid configuration."""
    options = {name: value for name, equals, value in (word.partition("=") for word in words) if equals}
    for name in options:
        assert re.search(rf"^{name} [?:]=", MAKEFILE, flags=re.MULTILINE), name
    subprocess.run(
        ["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True, stdin=subprocess.DEVNULL
    )
    chosen = options.get("SET", "").split()
    if ENDPOINTS or "endpoints." not in options.get("SET", ""):
        parse(compose.compose([f"scale={options.get('SCALE', 'default')}", *chosen], ROOT))


RAY = {
    "start": {
        "--head",
        "--address",
        "--port",
        "--num-cpus",
        "--include-dashboard",
        "--disable-usage-stats",
        "--block",
    }
}
"""Commands of Ray's command line, and options of them that this project uses."""


def check_ray(words: list[str]) -> None:
    """Ray's command line has the command and its options: its own parser says so where Ray is installed."""
    command, *options = words
    assert command in RAY, command
    assert {option.partition("=")[0] for option in options} <= RAY[command], options
    if find_spec("ray") is None:
        return
    from ray.scripts import scripts

    scripts.cli.commands[command].make_context(command, list(options))
