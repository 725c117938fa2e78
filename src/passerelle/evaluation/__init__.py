"""Scores, attention tensors and pictures."""
