"""Tools for our tests and yours: clusters of processes, faults, bad networks, sample calls of every op."""
