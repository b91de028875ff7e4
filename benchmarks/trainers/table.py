"""What was found, as tables, and what is not equal between the sides, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from rich import box
from rich.table import Table

from benchmarks.table import number
from benchmarks.trainers.turns import Iteration
from benchmarks.trainers.work import WARMUP, Work

TRL = "TRL"
Found = Mapping[str, list[Iteration]]
"""Side -> its iterations, with those that are not counted."""
EQUAL = ("sampled", "trained", "rows", "steps")
"""Counts that all sides must have alike."""
COUNTS = (*EQUAL, "passes", "taught", "scored")


def speed(work: Work, threads: int, found: Found) -> Table:
    """One row for each side: medians over the counted iterations. The last two columns have the lowest and highest too.

    Rates are per CPU second, so that other work on the machine changes them little.
    """
    names = ("parameters", "threads", "side", "sampled tokens/s", "trained rows/s", "s", "CPU s")
    made = Table(*names, "s, times TRL's", "CPU s, times TRL's", box=box.ASCII)
    theirs = counted(found[TRL])
    for name, iterations in found.items():
        ours = counted(iterations)
        sampled = median(one.counts["sampled"] / one.sampling for one in ours)
        trained = median(one.counts["rows"] / one.other for one in ours)
        seconds, cpu = [one.seconds for one in ours], [one.cpu for one in ours]
        cells = [number(value) for value in (sampled, trained, median(seconds), median(cpu))]
        ratios = ratio(seconds, [one.seconds for one in theirs]), ratio(cpu, [one.cpu for one in theirs])
        made.add_row(work.size, f"{threads}", name, *cells, *(() if name == TRL else ratios))
    return made


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Median, lowest and highest of the ratios of iterations that followed each other."""
    found = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def done(found: Found) -> Table:
    """One row for each side: what it did in an iteration, the mean over the counted ones."""
    made = Table(
        "side",
        "sampled tokens",
        "trained tokens",
        "rows",
        "optimizer steps",
        "training passes",
        "their tokens",
        "tokens without gradients",
        box=box.ASCII,
    )
    for name, iterations in found.items():
        ours = counted(iterations)
        means = (sum(one.counts[key] for one in ours) / len(ours) for key in COUNTS)
        made.add_row(name, *(f"{mean:,.1f}".removesuffix(".0") for mean in means))
    return made


def unequal(found: Found) -> str:
    """Which side did other work than the first one, and what; '' where all did the same."""
    (first, expected), *others = found.items()
    for name, iterations in others:
        if len(iterations) != len(expected):
            return f"{first} and {name} did unequal work: iterations: {len(expected)} and {len(iterations)}"
        for index, (one, other) in enumerate(zip(expected, iterations, strict=True)):
            for key in EQUAL:
                if one.counts[key] != other.counts[key]:
                    amounts = f"{one.counts[key]} and {other.counts[key]}"
                    return f"{first} and {name} did unequal work in iteration {index}: {key}: {amounts}"
    return ""


def counted(iterations: list[Iteration]) -> list[Iteration]:
    """The iterations after the first, in which caches and moments are made."""
    return iterations[WARMUP:]


def sentences(work: Work) -> Iterator[str]:
    """What is equal, and what is not."""
    lengths = f"{work.prompt} to {work.prompt + work.spread}" if work.spread else f"{work.prompt}"
    yield (
        f"An iteration: {work.prompts} prompts of {lengths} tokens, "
        f"{work.group} replies of exactly {work.reply} tokens to each, optimizer steps: {work.updates}, every row "
        f"once. Float32, clipped surrogate, beta {work.beta:g}, AdamW, no gradient checkpointing. "
        f"Iterations counted: {work.repeats}, in turn; not counted before them: {WARMUP}."
    )
    yield (
        "Rates are per CPU second. Sampled tokens/s: in the engine, or in model.generate. Trained rows/s: rows by the "
        "CPU seconds of everything else. Times TRL's: below 1, ours needs less."
    )
    yield "Not equal:"
    yield (
        "  native reads equal prompts once. transformers and TRL's default, model.generate, read each prompt once for "
        "every reply. TRL with vLLM or with continuous batching was not measured."
    )
    if work.beta:
        yield "  With the KL term both sides read every reply with the first weights. TRL also weights it by the ratio."
    yield "  Our engines draw each reply by its own seed and keep its log-probs. TRL draws by torch's generator."
    if work.updates > 1:
        also = "So does ours here" if work.recompute else "Ours uses those of the sampler"
        yield (
            f"  With {work.updates} optimizer steps TRL computes the replies' log-probs again before them. {also}."
        )
    elif work.recompute:
        yield "  Ours computes the replies' log-probs again. With one optimizer step TRL needs none."
    if work.spread:
        yield (
            "  TRL pads prompts on the left to the longest of the iteration, with a mask. Ours puts rows of similar "
            "length together and pads on the right, without a mask."
        )
    yield (
        f"  Training passes. TRL: exactly {work.rows} rows. Ours: at most {work.rows * work.longest:,} tokens, those "
        f"of {work.rows} rows of the greatest length."
    )
    yield (
        "  TRL's output head keeps no logits. It computes them in the forward pass and again in the backward pass, to "
        "save memory that ours spends. On a CPU it reads every position of a row, on a GPU those that predict a reply. "
        "Ours reads those that predict a reply, computes their logits once and keeps them. A part of the gap in "
        "training comes from this. No measurement here says how much."
    )
    yield "  TRL also computes the entropy of every distribution. Ours logs an estimate from the log-probs."
    yield (
        "  Not measured: checkpoints (a training of ours writes one every iteration, TRL where it is told to), "
        "environments, reward models, and second turns, in which native would keep its caches."
    )
