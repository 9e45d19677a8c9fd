"""Lessons: the same attention layer built, measured and broken in several ways."""
