"""A run as a page to look through: `rlanything view` writes trajectories, votes and tasks as files for a browser.

What a rollout's page says comes from `rollouts`. This room adds what the environment knows, tokens, the history of
tasks, and an index for filters and search. The page itself is in `page/`: HTML, CSS and scripts without a framework.
"""
