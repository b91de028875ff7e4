"""How a model reads pictures: tokens that stand for them in a prompt, and pixels that a forward pass gets with it.

Transformers does the work, by the image processor and the positions that belong to the model. Text and its ids are in
`engines.chat`.
"""
