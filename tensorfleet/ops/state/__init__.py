"""State between steps: variables, queues, tables, tensor arrays, checkpoints."""
