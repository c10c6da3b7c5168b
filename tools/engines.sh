#!/usr/bin/env bash
# Installs what the tests of the engines need beyond Python, if it is missing, as root: Debian's Slurm, munge and Open MPI.
# Starts nothing: the tests start a private Slurm of their own in a temporary folder.
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin"
packages=(munge slurmctld slurmd slurm-client openmpi-bin)

missing() {
    local name
    for name in munged slurmctld slurmd srun salloc sbatch scontrol mpirun; do
        command -v "$name" >/dev/null || return 0
    done
    return 1
}

missing || exit 0
if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
    echo "Installing Debian's ${packages[*]}." >&2
    # The packages start no services: policy-rc.d forbids that for as long as they are being installed.
    if [[ ! -e /usr/sbin/policy-rc.d ]]; then
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    if apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${packages[@]}" >&2 && ! missing; then
        exit 0
    fi
fi
# Not an error: without these programs their tests are skipped, and say so.
echo "The tests of Slurm and mpirun need them (Debian: apt-get install ${packages[*]}). Some are skipped." >&2
