"""Text generation behind the one protocol `Engine`, and the ways in and out of token ids that it needs."""
