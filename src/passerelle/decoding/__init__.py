"""Search for translations and whole-text translation."""
