"""Stage `bootstrap`: makes the three base models and the reward panels.

`stage` is the pipeline stage. `warmstart` trains the embedded models, `sharing` divides their gradients between two
processes, and `tokenizer` trains their tokenizer. Code for a certain kind of reward model is in `rewards`.
"""
