#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds kubectl, kube-apiserver and kwok from their Go modules into FOLDER, unless they are there.
# It needs Go 1.24, 5 GB for the modules and the build, and on two idle processors ten minutes.
#
#     build.sh FOLDER
#
# Published versions of the modules k8s.io/* replace those that lie beside k8s.io/kubernetes in its
# own repository. kwok is built with the same ones.
set -eu
kubernetes=1.33.13
kwok=v0.7.0
folder=$1
mkdir -p "$folder/modules"
folder=$(cd "$folder" && pwd)
[ "$(cat "$folder/versions" 2>/dev/null)" != "$kubernetes $kwok" ] || exit 0
export GOFLAGS=-mod=mod CGO_ENABLED=0

module() {
    mkdir -p "$folder/modules/$1"
    cd "$folder/modules/$1"
    printf 'module build\n\ngo 1.24.0\n\nrequire %s %s\n\nreplace (\n%s\n)\n' \
        "$2" "$3" "$replace" >go.mod
}

# go_build PROGRAM PACKAGE
go_build() {
    printf '== building %s\n' "$1" >&2
    go build -ldflags "-s -w
        -X k8s.io/component-base/version.gitVersion=v$kubernetes
        -X k8s.io/client-go/pkg/version.gitVersion=v$kubernetes" -o "$folder/$1" "$2"
}

replace=
module sources k8s.io/kubernetes "v$kubernetes"
sources=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" |
    sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
published=v0.${kubernetes#1.}
replace=$(sed -n "s|^[[:space:]]*\(k8s.io/[^ ]*\) => ./staging/.*|	\1 => \1 $published|p" \
    "$sources/go.mod")
module kubernetes k8s.io/kubernetes "v$kubernetes"
go_build kubectl k8s.io/kubernetes/cmd/kubectl
go_build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
module kwok sigs.k8s.io/kwok "$kwok"
go_build kwok sigs.k8s.io/kwok/cmd/kwok
printf '%s %s\n' "$kubernetes" "$kwok" >"$folder/versions"
