"""The program of a small desktop. It runs in the box with the system's Python; its modules import each other alone."""
