"""What an agent can do in a page: typed actions, and the two ways to write them.

`short` reads texts like `click 12`; `tool_calls` reads OSWorld's `computer_13` as JSON. Both give an `Action` or a
`Refusal`: what cannot be read is a value, and no exception.
"""
