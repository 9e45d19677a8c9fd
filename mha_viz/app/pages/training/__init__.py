"""The Training page: what is trained, on which text, and what it shows."""
