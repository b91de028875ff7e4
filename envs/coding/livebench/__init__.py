"""LiveBench's own grader of its coding category, in an environment of its own, inside a box, behind lines of JSON."""
