"""Neural machine translation as a reproducible, distributed workflow."""
