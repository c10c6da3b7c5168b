"""The parameter servers as a library: parameters and tables without a graph of one's own."""
