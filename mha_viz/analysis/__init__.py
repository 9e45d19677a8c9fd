"""Analyses of a model and its traces: one module for each question."""
