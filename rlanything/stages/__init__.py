"""One file per pipeline stage, and what the stages share: where things lie, and how the parts are put together."""
