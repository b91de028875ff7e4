"""The logits processor that chooses every token, so that vLLM samples what the other engines sample.

Position t of a request is drawn with the uniform number t of the request's seed, among the ids that its choices allow.
vLLM gets one finite logit for each row: that of the drawn token. Its value is the log-prob. vLLM samples greedily and
reports the value (`logprobs_mode=processed_logits`), so one ordinary output carries both.

Nothing is kept between positions that the tokens so far do not say. So a step that vLLM repeats, after a preemption or
in another batch, repeats its draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality

from rlanything.engines import sampling
from rlanything.engines.choices import Cursor
from rlanything.engines.decode import restrict
from rlanything.engines.vllm.support import KEY


class Row:
    """One request of the batch. `output`: vLLM's own list of the tokens that it has sampled so far.

    arguments: `seed`, `temperature`; `offset`, the number of response tokens that are in the prompt already;
    `choices`, without these tokens, or (); `end`, the id that stands for the end of a complete choice; `never`, an id
    that is not drawn, or None.
    """

    def __init__(self, arguments: Mapping[str, Any], max_tokens: int, output: Sequence[int]) -> None:
        offset = int(arguments["offset"])
        self._noise = sampling.uniforms([int(arguments["seed"])], offset + max_tokens)[0, offset:]
        self._end = (int(arguments["end"]),)
        self._cursor = Cursor(arguments["choices"]) if arguments["choices"] else None
        self._output, self._seen = output, 0
        self.temperature = float(arguments["temperature"])
        self.never: int | None = arguments["never"]

    @property
    def uniform(self) -> float:
        """The uniform number of the next position. At the end of a request the last one, which nobody reads."""
        return float(self._noise[min(len(self._output), len(self._noise) - 1)])

    def options(self) -> tuple[int, ...]:
        """The ids allowed next; () in free decoding. The end, once only one choice is left: the rest is certain."""
        if self._cursor is None:
            return ()
        for token in self._output[self._seen :]:
            if self._cursor.remaining > 1:
                self._cursor.advance(token)
        self._seen = len(self._output)
        return self._cursor.allowed if self._cursor.remaining > 1 else self._end


class OwnDraw(LogitsProcessor):
    """Leaves vLLM the drawn token of each row, with its log-prob as the logit.

    A row whose logits are not finite gets the logit NaN: an exception inside vLLM would end every request.
    """

    def __init__(self, vllm_config: object, device: torch.device, is_pin_memory: bool) -> None:
        self._rows: dict[int, Row] = {}

    def is_argmax_invariant(self) -> bool:
        """False: it changes which token is the most likely one."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow the requests that vLLM has removed from the batch, added to it, and moved inside it."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, params, _, output in batch_update.added:
            self._rows[index] = Row(params.extra_args[KEY], params.max_tokens, output)
        for start, end, way in batch_update.moved:
            moved, replaced = self._rows.pop(start, None), self._rows.pop(end, None)
            if moved is not None:
                self._rows[end] = moved
            if replaced is not None and way == MoveDirectionality.SWAP:
                self._rows[start] = replaced

    def apply(self, logits: Tensor) -> Tensor:
        """Logits BV that leave one token in each row. They are changed in place."""
        rows = [self._rows[index] for index in range(len(logits))]
        options = [row.options() for row in rows]
        kinds = ([i for i, allowed in enumerate(options) if bool(allowed) == kind] for kind in (False, True))
        parts = [part for part in kinds if part]
        if len(parts) == 1:  # most batches: no logits are copied
            chosen, logprobs = _draw(logits.float(), rows, options if options[0] else [])
        else:
            chosen = torch.empty(len(rows), dtype=torch.int64, device=logits.device)
            logprobs = torch.empty(len(rows), dtype=torch.float32, device=logits.device)
            for part in parts:
                at = torch.tensor(part, device=logits.device)
                allowed = [options[i] for i in part] if options[part[0]] else []
                chosen[at], logprobs[at] = _draw(logits[at].float(), [rows[i] for i in part], allowed)
        return logits.fill_(float("-inf")).scatter_(
            1, chosen.unsqueeze(1), logprobs.to(logits.dtype).unsqueeze(1)
        )


def _draw(logits: Tensor, rows: Sequence[Row], options: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    """Ids B and their log-probs B of logits BV, which are changed.

    NaN is the log-prob of a row whose logits are not finite.

    options: the allowed ids of each row, or [] in free decoding.
    """
    barred = [(at, row.never) for at, row in enumerate(rows) if row.never is not None]
    if barred:
        at, never = torch.tensor(barred, device=logits.device).unbind(1)
        logits[at, never] = float("-inf")  # one write for the whole batch
    own = restrict(logits, options) if options else logits
    finite = own.amax(-1).isfinite()  # the largest is NaN where one is NaN
    whole = bool(finite.all())
    if not whole:  # one question to the device in place of two passes over the logits
        own = own.masked_fill(~finite.unsqueeze(1), float("-inf"))
        own[~finite, 0] = 0.0
    uniform = torch.from_numpy(np.array([row.uniform for row in rows])).to(logits.device)
    temperature = torch.tensor([row.temperature for row in rows])
    chosen, logprobs = sampling.draw(own, uniform, temperature)
    if options:
        picked = [allowed[at] for allowed, at in zip(options, chosen.tolist(), strict=True)]
        chosen = torch.tensor(picked, device=logits.device)
    return chosen, logprobs if whole else logprobs.masked_fill(~finite, float("nan"))
