"""An iteration with our engines and trainer, and with TRL's GRPOTrainer: the same model, prompts and lengths.

`work` says what is done, `ours` and `grpo` do it, `turns` lets them take turns, `table` shows what was found.
"""
