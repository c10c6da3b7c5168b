"""Running a planned step: devices, segments, host ops, and the state they act on."""
