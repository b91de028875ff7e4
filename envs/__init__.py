"""Where agents act: one folder per environment family. Imports `rlanything.core` only."""
