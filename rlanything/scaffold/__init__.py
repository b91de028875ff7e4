"""New parts of a project from templates: today an environment with its configuration, its page and its tests.

The templates make something that works, to be changed. They are the only source of the example in docs/environments.md.
"""
