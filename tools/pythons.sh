#!/usr/bin/env bash
# Print the Python interpreters of this machine that TensorFleet supports, oldest first: version, tab, path.
# Looks on the PATH and among pyenv's versions, one interpreter for each minor version.
set -euo pipefail
for minor in 11 12 13; do
    for candidate in "python3.$minor" python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
        # A pyenv shim may exist and still not run, so each candidate is asked for its version.
        version=$("$candidate" -c 'import platform; print(platform.python_version())' 2>/dev/null) || continue
        if [[ $version == 3.$minor.* ]]; then
            printf '%s\t%s\n' "$version" "$("$candidate" -c 'import sys; print(sys.executable)')"
            break
        fi
    done
done
