#!/usr/bin/env bash
# Prints where Chromium is. Installs Debian's package if there is none and this is root; says what to do otherwise.
set -euo pipefail

find_browser() {
    local name
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
        [[ -n "$name" ]] && command -v "$name" && return
    done
    return 1
}

find_browser && exit
if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
    echo "No Chromium here: installing Debian's package." >&2
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
    find_browser && exit
fi
echo "The browser tests need Chromium. Install it (Debian: apt-get install chromium), or set CHROMIUM to its path." >&2
exit 1
