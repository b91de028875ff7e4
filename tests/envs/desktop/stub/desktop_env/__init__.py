"""A stand-in for OSWorld's package, written from the interface of its `DesktopEnv` (xlang-ai/OSWorld, Apache-2.0).

It has the constructor's arguments, `reset(task_config)`, `step(action, pause)`, `evaluate()`, `close()`, `_get_obs()`
and the keys of an observation, and no virtual machine.
"""

print("OSWorld prints when its package is imported")
