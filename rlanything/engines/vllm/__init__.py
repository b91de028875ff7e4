"""The engine `vllm`: text generation by vLLM, in the process that asks.

`engine` is the protocol `Engine`. `instance` starts and stops vLLM. `ending` says what goes with an instance. `draw` is
what vLLM calls to choose each token. `probe` compares the sampler's weights with the trainer's. `budget` shares the
memory of caches. `support` says what vLLM can run. `sighted` has vLLM's models that read pictures. `bases` lets engines
share frozen weights. `instance`, `ending`, `draw` and `sighted` alone import vLLM, when the first text is sampled.
"""
