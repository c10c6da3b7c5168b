"""The order of a step's work: items, threads, host ops, loops on the host."""
