"""The engine `vllm`: text generation by vLLM, in the process that asks.

`engine` is the protocol `Engine`. `instance` starts and stops vLLM. `draw` is what vLLM calls to choose each token.
`probe` compares the sampler's weights with the trainer's. `budget` shares the memory of caches. `support` says what
vLLM can run. `sighted` has vLLM's models that read pictures. Only `instance`, `draw` and `sighted` import vLLM. They
are imported when the first text is sampled.
"""
