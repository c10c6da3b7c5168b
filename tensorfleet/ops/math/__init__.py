"""Mathematics: elementwise functions, reductions, scans, segments, sorting, FFT."""
