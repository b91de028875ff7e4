"""Tables, figures and pages made from files on disk; knows nothing of how the loop or the learner works."""
