"""Text to token ids to batches: tokenizer, Arrow shards, batch plan."""
