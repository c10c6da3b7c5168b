"""What our tests use, and yours may: sample calls of every op."""
