"""The report: tables, figures and sentences made from evaluation/ and runs/.

What was measured is in `results/`; the modules here show it. Nothing here knows the loop, the learner or the engines.
"""
