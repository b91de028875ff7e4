"""vLLM's own server for models that read pictures: `python -m rlanything.engines.vllm.served.program OPTIONS`.

vLLM's engine may run in a process of its own, which begins with this module under another name. Models are registered
there as well.

It has a name in vLLM's list of models, so that a server with vLLM's own processor of pictures is not taken for it.
"""

from __future__ import annotations

import runpy
import sys

NAME = "rlanything-sighted"
"""What such a server calls its model."""

if __name__ in ("__main__", "__mp_main__"):
    from rlanything.engines.vllm import sighted

    sighted.register()
if __name__ == "__main__":
    sys.argv += ["--served-model-name", NAME]  # the last one counts
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
