"""LoRA: a frozen model with low-rank products beside some of its matrices, and what an engine sees of it.

The word adapter means the model that rewrites tasks in this project, so these products are called LoRA's weights.
"""
