#!/bin/sh
# SPDX-License-Identifier: MIT
# What tests with a real podman start from, in FOLDER: configuration with a storage of its own, a
# home, and with IMAGE an image that has only folders and links. Its programs are those of this
# machine: podman shows each VOLUME to every container at its own path, read-only.
# usage: engine.sh FOLDER IMAGE|"" VOLUME...
set -eu
folder=$1
image=$2
shift 2
volumes=
for path; do
	volumes="$volumes${volumes:+, }\"$path:$path:ro\""
done
cat >"$folder/engine.conf" <<EOF
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "host"
volumes = [$volumes]
EOF
cat >"$folder/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$folder/storage"
runroot = "$folder/run"
EOF
policy=$folder/home/.config/containers/policy.json
mkdir -p "${policy%/*}"
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$policy"
[ "$image" ] || exit 0
mkdir "$folder/root"
for name in usr etc proc dev sys tmp root run; do
	mkdir "$folder/root/$name"
done
for name in bin sbin lib lib64; do
	[ ! -L "/$name" ] || ln -s "$(readlink "/$name")" "$folder/root/$name"
done
chmod 1777 "$folder/root/tmp"
tar -C "$folder/root" -cf "$folder/root.tar" .
export HOME="$folder/home" CONTAINERS_CONF="$folder/engine.conf"
export CONTAINERS_STORAGE_CONF="$folder/storage.conf"
podman import "$folder/root.tar" "$image" >/dev/null 2>"$folder/log"
