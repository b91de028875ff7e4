"""Stage `bootstrap`: makes the three base models and the reward panels.

`stage` is the pipeline stage, `warmstart` trains the embedded models, `sharing` divides the work among two processes,
`tokenizer` trains their tokenizer. Code for a
certain kind of reward model is in `rewards`.
"""
