"""Where the tasks of a run are started: this machine, ssh hosts, Ray, Slurm, Kubernetes, or an engine of your own."""
