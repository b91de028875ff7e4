"""Stage `bootstrap`: the three base models and the reward panel.

`stage` is the pipeline stage, `warmstart` trains the embedded models, `tokenizer` learns their tokenizer. What is
special to a kind of reward model is in `rewards`.
"""
