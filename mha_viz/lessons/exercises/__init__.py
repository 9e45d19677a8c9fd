"""Exercises in text files, whose answers are computed on the layer that is shown."""
