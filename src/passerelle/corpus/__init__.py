"""Text to text: fetching, reading, cleaning and splitting sentence pairs."""
