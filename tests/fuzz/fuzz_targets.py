"""All targets by name."""

from __future__ import annotations

import fuzz_buffers
import fuzz_checkpoints
import fuzz_configs
import fuzz_endpoints
import fuzz_questions
import fuzz_records
import fuzz_replies

_PARTS = (
    fuzz_buffers,
    fuzz_records,
    fuzz_configs,
    fuzz_replies,
    fuzz_questions,
    fuzz_checkpoints,
    fuzz_endpoints,
)
TARGETS = {target.name: target for part in _PARTS for target in part.TARGETS}
