"""Training: optimizers, learning-rate schedules, moving averages and the global step."""
