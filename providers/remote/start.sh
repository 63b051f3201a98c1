# SPDX-License-Identifier: MIT
# Begins a stream to a host: finds the runner there, or takes it from stdin, and executes it. Each
# line on stdout is an answer:
#
#     set NAME=VALUE     a variable in the environment of a command there
#     node NAME          the machine's own name
#     run FOLDER         the folder of this run (runner/alive.c). Its name consists of "alive.",
#                        token, process, boot and namespace (control.sh). If the run has no folder,
#                        "/acp-broker." and the same words
#     send SIZE          the broker must send the program now, which has SIZE bytes
#     tied REASON        with acp_mode=apart: the run ends with the stream all the same
#     runner FOLDER      from here on, stdin and stdout are the link
#     scripts REASON     the runner cannot be stored or cannot run there; nothing follows
#
# The caller sets acp_token (random), acp_build (the hash of the program), acp_size (the program's
# size in bytes), acp_machine (uname -m), acp_mode ("apart" if the run may outlive the stream, or
# "") and acp_n (a newline). The caller also defines the function acp_before, which may print more
# lines, and which fails if nothing may be started.
#
# The script uses nothing from a login shell. If the stream ends early, the script leaves nothing
# there except empty folders (.cache, acp-broker-UID) and the folder of the run, which a later
# runner removes.
umask 077
exec 2>/dev/null

acp_scripts() {
	printf 'scripts %s\n' "$1"
	exit 0
}
for acp_tool in chmod dd id ls mkdir mv readlink rm uname; do
	command -v "$acp_tool" >/dev/null || acp_scripts "the program $acp_tool is missing there"
done
acp_there="$(uname -s) $(uname -m)"
[ "$acp_there" = "Linux $acp_machine" ] ||
	acp_scripts "the host is $acp_there, and the runner is made for Linux $acp_machine"

# In a shared folder, every user can make a folder or a link with our name. So we go into the folder
# first, and then ask the kernel where we are and who owns it. After that, no other user can write
# into it, or make us work in another folder.
acp_enter() {
	case $1 in
	*"$acp_n"*) return 1 ;;
	/?*) ;;
	*) return 1 ;;
	esac
	cd -P "$1" || return 1
	acp_folder=$(pwd -P)
	acp_folder=${acp_folder%/}/$2
	mkdir "./$2"
	cd -P "./$2" && [ "$(pwd -P)" = "$acp_folder" ] || return 1
	set -- $(ls -ldn .)
	case $1 in
	drwx------*) [ "$3" = "$acp_uid" ] ;;
	*) return 1 ;;
	esac
}
acp_uid=$(id -u)

# Whether the program $1 works: it prints its build. A damaged program does not print it, and no
# program does in a folder where nothing may be executed. The exit status would prove nothing: a
# shell runs an empty file as a script, which succeeds.
acp_try() {
	acp_said=$("./$1" </dev/null)
	case $acp_said in
	*"build=$acp_build"*) ;;
	*) return 1 ;;
	esac
}

# Whether a file that is made here can be executed.
acp_can_execute() {
	acp_probe=./.acp-runner.$acp_token.probe
	printf '#!/bin/sh\necho yes\n' >"$acp_probe" && chmod 700 "$acp_probe" || acp_why='no room'
	[ -n "$acp_why" ] || [ "$("$acp_probe")" = yes ] || acp_why='nothing can be executed there'
	rm -f "$acp_probe"
	[ -z "$acp_why" ]
}

# Chooses arguments with which dd reads exactly acp_size bytes, however many reads they take. If
# this dd lacks fullblock, it reads byte by byte. dd writes only after it has read everything, so
# that even with a full disk no byte of the program stays in stdin.
acp_choose_dd() {
	acp_dd="bs=$acp_size count=1 iflag=fullblock"
	acp_left=$({ printf ab && printf cdX; } |
		{ dd bs=4 count=1 iflag=fullblock >/dev/null && dd bs=8; })
	[ "$acp_left" = X ] || acp_dd="ibs=1 obs=$acp_size count=$acp_size"
}

# Takes the program from stdin and moves it into its place.
acp_take() {
	acp_choose_dd
	acp_part=./.acp-runner.$acp_token.part
	printf 'send %s\n' "$acp_size"
	dd $acp_dd >"$acp_part"
	set -- $(ls -ln "$acp_part")
	acp_why='no room'
	if [ "$5" = "$acp_size" ] && chmod 700 "$acp_part"; then
		acp_why=
		mv -f "$acp_part" "./$acp_name"
		acp_try "$acp_name" || acp_why='it does not work there'
	fi
	rm -f "$acp_part"
	[ -z "$acp_why" ]
}

# Makes the folder of the run beside the program, or below TMPDIR or /tmp if nothing can be written
# there. The name is random, so that nobody else can have made the folder. The run works without the
# folder, too.
acp_make_run() {
	for acp_base in "$acp_folder" "${TMPDIR:-/tmp}"; do
		acp_made=${acp_base%/}/alive.${acp_run#/acp-broker.}
		case $acp_made in
		*"$acp_n"*) continue ;;
		/*) ;;
		*) continue ;;
		esac
		mkdir "$acp_made" || continue
		if mkfifo "$acp_made/alive" "$acp_made/held"; then
			acp_run=$acp_made
			return
		fi
		rm -rf "$acp_made"
	done
}

# Says so if systemd-logind ends the processes of this login at its end: logind.conf(5). The list of
# users that it spares has root if it is empty.
acp_ask_logind() {
	[ "$acp_mode" = apart ] && [ "${XDG_SESSION_ID-}" ] || return
	acp_user=$(id -un)
	set -- $(busctl --system --timeout=5 get-property org.freedesktop.login1 \
		/org/freedesktop/login1 org.freedesktop.login1.Manager \
		KillExcludeUsers KillOnlyUsers KillUserProcesses)
	[ "${1-}" = as ] || return
	[ "$acp_user $2" != 'root 0' ] || return
	acp_count=$2
	shift 2
	while [ "$acp_count" -gt 0 ]; do
		[ "$1" != "\"$acp_user\"" ] || return
		acp_count=$((acp_count - 1))
		shift
	done
	case "$2 $* " in
	0*' b true ' | [1-9]*" \"$acp_user\" "*)
		printf 'tied systemd-logind there ends the processes of %s at a logout %s\n' \
			"$acp_user" '(KillUserProcesses, KillOnlyUsers)'
		acp_mode=
		;;
	esac
}

acp_become() {
	acp_tell_variables
	acp_ask_logind
	printf 'node %s\n' "$(uname -n)"
	acp_make_run
	printf 'run %s\nrunner %s\n' "$acp_run" "$acp_folder"
	set -- "./$acp_name"
	[ -z "$acp_mode" ] || set -- "$@" "$acp_mode" "$acp_token"
	[ "${acp_run%/*}" = '' ] || set -- "$@" run "$acp_run"
	exec "$@"
}

read -r acp_boot </proc/sys/kernel/random/boot_id
acp_space=$(readlink /proc/self/ns/pid)
acp_space=${acp_space##*[}
acp_run=/acp-broker.$acp_token.$$.${acp_boot%%-*}.${acp_space%]}
acp_before || exit 1

acp_name=acp-runner.$acp_build
acp_tried=
acp_cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "${XDG_CACHE_HOME-}" ] || [ -z "$acp_cache" ] || mkdir "$acp_cache"
for acp_base in "$acp_cache" "${XDG_RUNTIME_DIR-}" /dev/shm "${TMPDIR-}" /tmp "${HOME-}"; do
	acp_why=
	if acp_enter "$acp_base" "acp-broker-$acp_uid"; then
		! acp_try "$acp_name" || acp_become
		! { acp_can_execute && acp_take; } || acp_become
	else
		acp_why='no folder of ours'
	fi
	[ -z "$acp_base" ] || acp_tried="$acp_tried${acp_tried:+, }$acp_base ($acp_why)"
done
acp_scripts "no folder there takes the runner: $acp_tried"
