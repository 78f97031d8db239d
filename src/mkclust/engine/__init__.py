"""Weights and leading eigenvectors found together, and how they are certified."""
