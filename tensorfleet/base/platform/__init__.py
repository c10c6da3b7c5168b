"""What scripts use besides graphs: logging, flags, files, versions."""
