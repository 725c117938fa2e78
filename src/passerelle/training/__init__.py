"""Training: loss, schedule, step, loop, checkpoints, Ray."""
