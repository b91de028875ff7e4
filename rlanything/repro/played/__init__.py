"""`rlanything replay --play`: a run's loop once more, with the environment, and recorded tokens in place of models.

The loop, the environment, the prompts, the tokenizers and the parsers are those of a training. Only the engines are
others: they answer with what the run sampled. So everything that a run stores must come out again, except which tokens
were sampled and how likely they were.
"""
