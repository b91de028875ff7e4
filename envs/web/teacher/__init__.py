"""What the descriptions of kinds say about steps: an expert that reaches success, and labels that are exact.

Both see what an agent sees: the instruction, the page, and their own actions.
"""
