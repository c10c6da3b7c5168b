"""State that lives between steps: queues, tables, accumulators, tensor arrays."""
