"""The master of a cluster's steps: placement, the tasks' programs, the driver of a step."""
