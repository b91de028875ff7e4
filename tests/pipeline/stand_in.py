"""Stands in for a stage: notes that it ran and writes every output, with new content each time.

    python stand_in.py STAGE OUTPUT...

Stages named in the environment variable SAME write what they always write, as a deterministic stage does whose inputs
changed without effect. A name without a suffix is a folder, which gets the files that other stages ask for by name.
"""

import os
import sys
import uuid
from pathlib import Path

INSIDE = {
    "data/tasks": ["train.jsonl", "in_domain.jsonl", "out_of_domain.jsonl", "reward_panel.jsonl"],
    "models": ["policy/weights", "reward/weights", "adapter/weights", "reward_panel.jsonl.gz"],
}


def main() -> None:
    """Run as the stage named in the first argument."""
    stage, *outputs = sys.argv[1:]
    content = stage if stage in os.environ.get("SAME", "").split() else f"{stage} {uuid.uuid4()}"
    for output in outputs:
        path = Path(output)
        files = [path] if path.suffix else [path / name for name in INSIDE.get(output, ["content"])]
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content} {file}\n")
    with Path("ran.log").open("a") as log:
        log.write(f"{stage}\n")


main()
