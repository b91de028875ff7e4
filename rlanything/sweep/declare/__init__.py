"""What a sweep file declares, and every check of it before any work. Nothing here runs a trial or writes a file."""
