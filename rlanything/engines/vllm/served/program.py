"""vLLM's own server for models that read pictures: `python -m rlanything.engines.vllm.served.program OPTIONS`.

vLLM's engine may run in a process of its own, which imports this module first. So the models are registered here.
"""

from __future__ import annotations

import runpy

from rlanything.engines.vllm import sighted

sighted.register()

if __name__ == "__main__":
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
