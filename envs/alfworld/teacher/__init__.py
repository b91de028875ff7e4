"""What knows the right commands: the oracle that labels steps, the searching expert, and the measure of difficulty.

No policy sees any of it.
"""
