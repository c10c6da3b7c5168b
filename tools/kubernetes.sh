#!/usr/bin/env bash
# Build a Kubernetes API server for the tests of `--on kubernetes`, and print the folder that has it.
# From Debian's source package of Kubernetes 1.20, which brings its Go modules along, with Debian's Go and etcd. Installs
# nothing: everything is unpacked below build/kubernetes (2.7 GB). Ten to fifteen minutes the first time, nothing after.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/kubernetes
bin=$root/bin

if [[ -x $bin/etcd && -x $bin/kube-apiserver && -x $bin/kube-controller-manager ]]; then
    echo "$bin"
    exit
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-source >/dev/null; then
    echo "Building Kubernetes needs Debian's apt-get and dpkg-source (package dpkg-dev)." >&2
    exit 1
fi

fetch() {
    mkdir -p "$root"/apt/{lists/partial,archives/partial,sources} "$root/packages" "$bin"
    # The machine's own package sources, with deb-src beside deb. Lists and packages stay in this folder.
    if [[ -s /etc/apt/sources.list.d/debian.sources ]]; then
        sed 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources >"$root/apt/sources/debian.sources"
    else
        sed 's/^deb \(.*\)$/deb \1\ndeb-src \1/' /etc/apt/sources.list >"$root/apt/sources/debian.list"
    fi
    local apt=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$root/apt/sources"
        -o "Dir::State::Lists=$root/apt/lists" -o "Dir::Cache=$root/apt" -o "Dir::Cache::archives=$root/apt/archives")
    apt-get "${apt[@]}" update
    cd "$root/packages"
    local go
    go=$(apt-cache "${apt[@]}" depends golang-go | sed -n 's/.*Depends: \(golang-[0-9.]*-go\)$/\1/p' | head -1)
    apt-get "${apt[@]}" download "$go" "${go%-go}-src" etcd-server
    for package in ./*.deb; do dpkg -x "$package" "$root/system"; done
    cp "$root/system/usr/bin/etcd" "$bin/etcd"
    if [[ ! -d $root/source ]]; then
        apt-get "${apt[@]}" source --download-only kubernetes
        dpkg-source --no-check -x kubernetes_*.dsc "$root/source"
    fi
}

build() {
    local goroot
    goroot=$(echo "$root"/system/usr/lib/go-*)
    export GOROOT=$goroot GOPATH=$root/gopath GOCACHE=$root/cache HOME=$root PATH=$goroot/bin:$PATH
    # As Kubernetes 1.20 builds itself: all modules are below vendor, and none is fetched.
    export GO111MODULE=off GOPROXY=off CGO_ENABLED=0
    local home=k8s.io/kubernetes
    mkdir -p "$GOPATH/src/k8s.io"
    ln -sfn "$root/source" "$GOPATH/src/$home"
    cd "$GOPATH/src/$home"
    if [[ ! -s pkg/generated/openapi/zz_generated.openapi.go ]]; then
        # The schema of all objects is the one generated file that the sources lack.
        go build -p 1 -o "$root/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
        local folders
        folders=$(grep -rl --include=*.go '+k8s:openapi-gen=' vendor/k8s.io/*/ pkg cmd |
            grep -v -e vendor/k8s.io/code-generator/ -e vendor/k8s.io/sample- |
            xargs -n1 dirname | LC_ALL=C sort -u | sed "s,^,$home/," | paste -sd,)
        "$root/openapi-gen" -i "$folders" -p $home/pkg/generated/openapi -O zz_generated.openapi \
            -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$root/violations"
    fi
    local flags="" package
    for package in component-base/version client-go/pkg/version; do
        flags+=" -X $home/vendor/k8s.io/$package.gitVersion=v1.20.2"
        flags+=" -X $home/vendor/k8s.io/$package.gitMajor=1 -X $home/vendor/k8s.io/$package.gitMinor=20"
    done
    for program in kube-apiserver kube-controller-manager; do
        go build -p 1 -trimpath -ldflags "$flags" -o "$bin/$program" "./cmd/$program"
    done
}

[[ -d $root/source && -x $bin/etcd ]] || (fetch) >&2
(build) >&2
echo "$bin"
