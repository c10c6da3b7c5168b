"""What our tests use, and yours may: clusters of processes, faults, bad networks, sample calls of every op."""
