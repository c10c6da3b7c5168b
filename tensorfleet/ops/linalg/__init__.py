"""Linear algebra: products, factorizations, solvers, matrix functions."""
