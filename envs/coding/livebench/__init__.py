"""LiveBench's coding questions: reading them, keeping answers, and grading with its own code or with our sandbox.

Its grader runs in its own virtual environment and box. Who samples the answers is not known here.
"""
