"""The engine `openai`: asks a model behind any OpenAI-compatible endpoint (docs/endpoints.md).

`engine` is the engine, `text_ids` its chat format. `asking` repeats requests that failed, `client` sends one, `answers`
reads what came back. Nothing of a server is trusted: sizes, nesting and types are bounded before anything is used.
"""
