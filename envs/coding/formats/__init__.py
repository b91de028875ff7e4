"""Programming problems in other people's formats, in and out."""
