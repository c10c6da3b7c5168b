#!/usr/bin/env bash
# Build a Kubernetes API server for the tests of `--on kubernetes`, and print the folder that has it.
# From Debian's source package of Kubernetes, which brings its Go modules along, and Debian's etcd. Installs nothing:
# everything is unpacked below build/kubernetes. About eleven minutes of one core the first time, a second after that.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/kubernetes
bin=$root/bin
wanted=(kube-apiserver kube-controller-manager)

if [[ -x $bin/etcd && -x $bin/kube-apiserver && -x $bin/kube-controller-manager ]]; then
    echo "$bin"
    exit
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-source >/dev/null; then
    echo "Building Kubernetes needs Debian's apt-get and dpkg-source (package dpkg-dev)." >&2
    exit 1
fi
mkdir -p "$root"/{apt/lists/partial,apt/archives/partial,apt/sources,packages,bin}

# The machine's own package sources, with deb-src beside deb. Lists and packages stay in this folder.
for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [[ -s $file ]] || continue
    sed -E 's/^Types: deb$/Types: deb deb-src/; s/^deb (.*)$/deb \1\ndeb-src \1/' "$file" >"$root/apt/sources/$(basename "$file")"
done
[[ -s $root/apt/sources/sources.list ]] && mv "$root/apt/sources/sources.list" "$root/apt/sources/main.list"
apt=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$root/apt/sources" -o "Dir::State::Lists=$root/apt/lists"
    -o "Dir::Cache=$root/apt" -o "Dir::Cache::archives=$root/apt/archives" -o APT::Sandbox::User=root -qq)
{
    apt-get "${apt[@]}" update
    cd "$root/packages"
    go=$(apt-cache "${apt[@]}" depends golang-go | sed -n 's/.*Depends: \(golang-[0-9.]*-go\)$/\1/p' | head -1)
    apt-get "${apt[@]}" download "$go" "${go%-go}-src" etcd-server
    for package in ./*.deb; do dpkg -x "$package" "$root/system"; done
    cp "$root/system/usr/bin/etcd" "$bin/etcd"

    [[ -d $root/source ]] || { apt-get "${apt[@]}" source --download-only kubernetes && dpkg-source --no-check -x kubernetes_*.dsc "$root/source"; }
} >&2

export GOROOT=$root/system/usr/lib/${go#golang-} GOPATH=$root/gopath GOCACHE=$root/cache GOFLAGS=-mod=vendor CGO_ENABLED=0
export GOROOT=${GOROOT%-go} PATH=$root/system/usr/lib/go-${go//[!0-9.]/}/bin:$PATH
