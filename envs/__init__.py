"""Environment families, one folder each. They know `rlanything.core` and `rlanything.files`, nothing else."""
