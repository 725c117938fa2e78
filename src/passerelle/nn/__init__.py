"""The models and their parts, in plain torch."""
