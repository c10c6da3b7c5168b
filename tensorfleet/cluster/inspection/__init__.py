"""What a running task tells about itself, to those who have the cluster's token: load, threads, traces, values."""
