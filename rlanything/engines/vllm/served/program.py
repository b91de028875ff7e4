"""vLLM's own server for models that read pictures: `python -m rlanything.engines.vllm.served.program OPTIONS`.

vLLM's engine may run in a process of its own, which begins with this module under another name. Models are registered
there as well.
"""

from __future__ import annotations

import runpy

if __name__ in ("__main__", "__mp_main__"):
    from rlanything.engines.vllm import sighted

    sighted.register()
if __name__ == "__main__":
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
