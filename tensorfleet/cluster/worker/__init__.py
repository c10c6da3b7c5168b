"""The worker of a cluster's steps: stages of a registered graph, run on request."""
