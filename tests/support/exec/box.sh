#!/bin/sh
# SPDX-License-Identifier: MIT
# A platform for `backend = exec`, whose boxes are folders below FOLDER. The verbs are the commands
# of a profile.
#
#     box.sh FOLDER KIND VERB [NAME [WORD…]]
#
# KIND "plain": a program runs on this machine, with HOME in the box. KIND "apart:SHOWN": it runs in
# the namespaces of the box (user, mount, pid), with the box's own root. That root also shows the
# folder SHOWN of this machine. The script writes each VERB except exec, with its NAME, to
# FOLDER/log. It works as an ordinary user.
set -eu
folder=$1 kind=$2 verb=$3
name=${4-}
[ $# -lt 4 ] || shift
shift 3
mkdir -p "$folder"
[ "$verb" = exec ] || printf '%s %s\n' "$verb" "$name" >>"$folder/log"
box=$folder/boxes/$name
fake=/usr/local/bin:/usr/bin:/bin

# The box's init makes the root, writes down its process id as this machine sees it, and waits.
make_apart() {
	for part in usr etc proc dev tmp home; do
		mkdir -p "$box/root/$part"
	done
	mkfifo "$box/ready"
	# The box outlives the broker and the test, so it does not get the mark of the test.
	# shellcheck disable=SC2016
	env -u ACP_TEST_MARK setsid --fork \
		unshare --user --map-root-user --mount --pid --fork --kill-child /bin/sh -c '
			set -eu
			read -r pid rest </proc/self/stat
			cd "$1/root"
			mount --rbind /usr usr
			mount -o remount,bind,ro usr
			mount --rbind /etc etc
			mount -o remount,bind,ro etc
			mount --rbind /dev dev
			for part in bin sbin lib lib32 lib64 libx32; do
				if [ -L "/$part" ]; then
					ln -sfn "$(readlink "/$part")" "$part"
				elif [ -d "/$part" ]; then
					mkdir -p "$part"
					mount --rbind "/$part" "$part"
				fi
			done
			mkdir -p "./$2"
			mount --rbind "$2" "./$2"
			mount -o remount,bind,ro "./$2"
			mount -t proc proc proc
			echo "$pid" >"$1/pid"
			echo ready >"$1/ready"
			exec chroot . /usr/bin/sleep infinity' \
		box "$box" "${kind#apart:}" </dev/null >/dev/null 2>"$box/said"
	read -r ready <"$box/ready"
	rm "$box/ready"
}

case $verb in
start)
	mkdir -p "$box/home"
	[ "$kind" = plain ] || [ -e "$box/pid" ] || make_apart
	: >"$box/running"
	echo "$name"
	echo "what follows the first line is nothing to anybody"
	;;
exec)
	[ -e "$box/running" ] || { echo "box $name does not run" >&2; exit 125; }
	if [ "$kind" = plain ]; then
		exec env -i HOME="$box/home" PATH="$fake" IN_BOX="$name" "$@"
	fi
	read -r pid <"$box/pid"
	exec nsenter --target "$pid" --user --preserve-credentials --mount --pid --root --wdns=/ \
		env -i HOME=/home PATH="$fake" IN_BOX="$name" "$@"
	;;
stop)
	rm -f "$box/running"
	[ ! -e "$box/pid" ] || { read -r pid <"$box/pid" && kill -9 "$pid"; }
	rm -f "$box/pid"
	;;
destroy)
	[ ! -e "$box/pid" ] || { read -r pid <"$box/pid" && kill -9 "$pid"; }
	rm -rf "$box"
	;;
list)
	ls "$folder/boxes" 2>/dev/null || true
	;;
state)
	[ -d "$box" ] || exit 4
	[ -e "$box/running" ] || exit 3
	;;
copy-in)
	cp "$1" "$2"
	;;
*)
	exit 2
	;;
esac
