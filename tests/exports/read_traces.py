"""Reads a folder's traces with verifiers, in the environment of that package, and prints what it found as JSON."""

import json
import sys
from pathlib import Path

from verifiers.v1.trace import WireTrace
from verifiers.v1.utils.trace_store import read_episodes

found = []
for episode in read_episodes(Path(sys.argv[1]), WireTrace):
    (trace,) = episode.traces
    branches = [
        {"ids": b.token_ids, "mask": b.sampled_mask, "logprobs": b.logprobs, "advantages": b.advantages}
        for b in trace.branches
    ]
    messages = [[m.content for m in b.messages] for b in trace.branches]
    about = {
        "group": episode.group.id,
        "step": episode.run.work.step,
        "ok": episode.ok,
        "task": trace.task.key,
    }
    counted = {"reward": trace.reward, "truncated": trace.is_truncated, "wrote": trace.num_output_tokens}
    found.append({**about, **counted, "branches": branches, "messages": messages})
json.dump(found, sys.stdout)
