"""A rehearsal of a large experiment: tiny stand-ins for the checkpoints that the configuration names, and for its data.

A stand-in has the real architecture, a byte-level tokenizer and a chat template of the real shape. A short training
teaches it to write some replies that can be read. The environment writes the generated games or problems (`write_data`
of `core.protocols.GeneratedData`). The pipeline that a rehearsal runs is the ordinary one, in `stages`.
"""
