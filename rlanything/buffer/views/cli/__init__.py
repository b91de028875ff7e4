"""`rlanything buffer`: the arguments of its commands and how they answer. The work is done elsewhere in `views`."""
