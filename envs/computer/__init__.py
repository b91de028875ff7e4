"""What an agent can do at a computer: typed actions, and the ways to write them. Web pages and desktops share it.

`short` reads texts like `click 12`, `tool_calls` reads OSWorld's `computer_13` as JSON, `computer_use` reads the tool
that Qwen's models were trained with, `arguments` has the types and limits of both, and `reply` finds which of them a
reply holds. All give an `Action` or a `Refusal`: what cannot be read is a value, and no exception. `calls` writes
actions as `computer_13`. `turns` says which running episode an action of a turn is for.
"""
