"""Token ids as text, with the tokenizer file alone: no model is loaded and no code of a checkpoint runs.

A tokenizer file may be anybody's, so a child process with limits on time and memory reads it. Where there is no such
file, or it cannot be read, texts are None and the reason is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

from rlanything.config import Checkpoint
from rlanything.engines.openai import text_ids
from rlanything.files.limits import limit_process
from rlanything.rollouts.runs import NamedRun

FILE = "tokenizer.json"
SECONDS = 20
"""CPU time that reading a tokenizer and a rollout may take. Large tokenizers need two seconds."""
WALL_S = 300
"""Seconds by the clock that it may take, on a busy machine."""
MEMORY_MB = 2048
"""Memory that the child process may take in addition to that of this process."""
LONGEST = 1 << 24
"""Characters of all texts together: a vocabulary can hold tokens of any length."""
Ids = tuple[int, ...]


@dataclass
class Texts:
    """The texts of token sequences that were asked for. problem: why some are missing, or ''."""

    problem: str = ""
    texts: dict[Ids, str] = field(default_factory=dict)

    def of(self, ids: Ids) -> str | None:
        """The text of one of the sequences, special tokens included; None where it could not be decoded."""
        return self.texts.get(ids) if ids else ""


def decode(run: NamedRun, role: str, sequences: Sequence[Ids]) -> Texts:
    """The texts of sequences of the run's `policy` or `reward` model. Those that were asked for before are known.

    After a problem nothing more is decoded."""
    known: Texts = run.decoded.setdefault(role, Texts())
    asked = sorted({ids for ids in sequences if ids and ids not in known.texts})
    if not asked or known.problem:
        return known
    file = tokenizer_file(run, role)
    if file is None:
        known.problem = f"no {FILE} of the {role} model here: its tokens are not decoded"
        return known
    found = in_child(lambda: _decode(file, asked))
    if isinstance(found, str):
        known.problem = f"{file}: tokens are not decoded: {found}"
    else:
        known.texts.update(zip(asked, found, strict=True))
    return known


def decode_endpoint(sequences: Sequence[Ids]) -> Texts:
    """The texts of replies that an endpoint gave: their ids are bytes of the text."""
    try:
        return Texts(texts={ids: text_ids.decode(ids) for ids in sequences})
    except ValueError as error:
        return Texts(f"replies of the endpoint are not decoded: {error}")


def tokenizer_file(run: NamedRun, role: str) -> Path | None:
    """The tokenizer of the trained model, otherwise of the one that training started with; None without either."""
    source: Checkpoint = getattr(run.terms, role)
    places = (run.stored.folder / "checkpoints" / role, run.root / source.path)
    for place in places:
        if (place / FILE).is_file():
            return place / FILE
    if (run.root / source.path).exists() or source.path.startswith((".", "/", "models/", "runs/")):
        return None
    from rlanything.engines.sources import cached

    return cached(source.path, FILE, source.revision)


def in_child(work: Callable[[], list[str]]) -> list[str] | str:
    """The texts that `work` makes of a tokenizer in a child process with limits, or why there are none.

    The child is a fork, so that nothing is imported again."""
    try:
        child, receiver = _started(work)
    except OSError as error:
        return f"no process can be started to read the tokenizer ({error.strerror})"
    try:
        if receiver.poll(WALL_S):
            found: list[str] | str = json.loads(receiver.recv_bytes())
            return found
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
    return f"the tokenizer crashes, or needs more than {SECONDS} s or {MEMORY_MB} MB"


def _started(work: Callable[[], list[str]]) -> tuple[ForkProcess, Connection]:
    """A process that works, and where its answer arrives. Raises `OSError`."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with sender:
        child = context.Process(target=_report, args=(work, sender), daemon=True)
        child.start()
    return child, receiver


def _report(work: Callable[[], list[str]], sender: Connection) -> None:
    limit_process(SECONDS, MEMORY_MB)
    try:
        found: list[str] | str = work()
        if sum(map(len, found)) > LONGEST:
            found = f"their texts have more than {LONGEST:,} characters"
    except BaseException as error:  # a panic of the library is not an `Exception`
        found = " ".join(str(error).split())[:200] or type(error).__name__
    sender.send_bytes(json.dumps(found).encode())
    os._exit(0)


def _decode(file: Path, sequences: Sequence[Ids]) -> list[str]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    return [tokenizer.decode(list(s), skip_special_tokens=False) for s in sequences]
