# SPDX-License-Identifier: MIT
# This shell leads the session of a channel. It starts a process, and reports how the process ended
# and when none of its descendants is left. Comes after members.sh.
#
# stdin begins with one line of shell text. The line sets acp_id, acp_root, acp_dir, acp_path,
# acp_in, acp_merge and acp_apart, defines acp_launch, and calls acp_start with the words of the
# command. The shell reads the line byte by byte, because everything after it is for the process.
#
# A channel's shell must lead a session and its group. Some servers do not ensure this: dropbear
# without a terminal, and daemons in containers. Then signals to the group would reach nobody, and
# signals from the process to its own group would reach us and the server.
acp_serve() {
	[ -z "${BASH_VERSION-}" ] || set +o posix
	[ -n "${acp_led-}" ] || acp_leads $$ ||
		exec setsid "$acp_sh" -c 'acp_led=yes; . "$0/library"; acp_serve' "$acp_run"
	exec 9<>"$acp_run/events"
	read -r acp_request || exit 0
	eval "$acp_request"
}

# All signals that end a process by default, except SIGKILL.
acp_signals='1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 24 25 26 27 29 30 31'

# The shell ignores these signals, so that it survives signals to the group. The process starts with
# the original handling of all signals.
acp_start() {
	acp_job=$acp_run/job.$acp_id
	exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>/dev/null
	[ "$acp_in" = 1 ] || exec 3</dev/null
	if [ "$acp_merge" = 1 ]; then
		exec 5>&4
	elif [ "$acp_apart" = 1 ]; then
		acp_pair
		exec 5>"$acp_pipe"
		[ ! -e "$acp_pipe.off" ] || exit 0
	fi
	: >"$acp_job"
	trap '' $acp_signals
	[ -z "${BASH_VERSION-}" ] || trap 'jobs -l >>"$acp_job"' CHLD
	(acp_child "$@") <&3 >&4 2>&5 3<&- 4>&- 5>&- &
	acp_pid=$!
	exec 3<&- 4>&- 5>&-
	acp_wait
	[ -z "${BASH_VERSION-}" ] || trap - CHLD
	acp_tell "$acp_id exited $acp_end"
	acp_watch
	acp_drop_group "$acp_run/group.$acp_id"
	acp_tell "$acp_id emptied"
	rm -f "$acp_job"
	exit 0
}

# If the stderr of a process has its own channel, there is a shell for that channel, too, and a FIFO
# between the two shells. Each opens the FIFO and so waits for the other.
acp_pair() {
	acp_pipe=$acp_run/err.$acp_id
	[ ! -e "$acp_pipe.off" ] || exit 0
	mkfifo "$acp_pipe" 2>/dev/null # it fails for the shell that comes second
	[ -p "$acp_pipe" ] || exit 1
}

# Runs in the shell of the channel for stderr.
acp_carry_stderr() {
	acp_pair
	exec 3<"$acp_pipe"
	rm -f "$acp_pipe"
	exec cat <&3 3<&- 9>&-
}

# Called if one of the two shells of the process $1 will not come. Releases the shell that waits for
# it; the released shell starts nothing.
acp_release() {
	acp_pipe=$acp_run/err.$1
	: >"$acp_pipe.off"
	for acp_round in 1 2 3 4 5; do
		if [ -p "$acp_pipe" ]; then
			: 3<>"$acp_pipe"
			rm -f "$acp_pipe"
		fi
		sleep 1
	done
}

# Runs in the child. If it cannot start the process, acp_start still reports an end, and the broker
# ignores that report.
acp_child() {
	trap - $acp_signals CHLD
	if [ -n "$acp_root" ]; then
		acp_enter
	else
		{ cd "$acp_dir"; } 2>/dev/null || acp_fail directory "$(acp_why)"
	fi
	acp_find "$1"
	acp_tell "$acp_id started $$"
	acp_launch "$@"
}

# The folder must be the one that the broker resolved below the root, so we ask the kernel for the
# path of the working directory.
acp_enter() {
	acp_rest=${acp_dir#"$acp_root"}
	{ cd -P "$acp_root"; } 2>/dev/null || acp_fail directory "$(acp_why)"
	acp_at=$(pwd -P)
	[ -z "${acp_rest#/}" ] && return
	{ cd -P "./$acp_rest"; } 2>/dev/null || acp_fail directory "$(acp_why)"
	[ "$(pwd -P)" = "${acp_at%/}/${acp_rest#/}" ] || acp_fail directory link
}

acp_why() {
	if [ ! -e "$acp_dir" ]; then
		echo 'no such directory'
	elif [ ! -d "$acp_dir" ]; then
		echo 'not a directory'
	else
		echo 'permission denied'
	fi
}

acp_fail() {
	acp_tell "$acp_id failed $*"
	exit 0
}

# Searches for a program like execvp(3), and reports what is wrong if there is none to execute.
acp_find() {
	case $1 in
	*/*) acp_rest=${1%/*}: acp_name=${1##*/} ;;
	*) acp_rest=$acp_path: acp_name=$1 ;;
	esac
	acp_kind=none acp_seen=
	while [ -n "$acp_rest" ] && [ -n "$1" ]; do
		acp_file=${acp_rest%%:*}
		acp_rest=${acp_rest#*:}
		case $1 in
		*/*) acp_file=$1 acp_rest= ;;
		*) acp_file=${acp_file:-.}/$acp_name ;;
		esac
		! acp_try "$acp_file" || return 0
	done
	acp_tell_path file "$acp_seen"
	acp_tell_path interpreter "$acp_interpreter"
	acp_fail "$acp_kind"
}

# Whether a file can be executed. acp_seen keeps the first file that exists but cannot be executed,
# for the message.
acp_try() {
	acp_found_kind= acp_line=
	if [ ! -e "$1" ]; then
		return 1
	elif [ -d "$1" ]; then
		acp_found_kind=folder
	elif [ ! -x "$1" ]; then
		acp_found_kind=denied
	else
		{ read -r acp_line <"$1"; } 2>/dev/null
		acp_has_interpreter "$acp_line" && return 0
		acp_found_kind=interpreter
	fi
	[ -n "$acp_seen" ] || acp_seen=$1 acp_kind=$acp_found_kind
	return 1
}

acp_has_interpreter() {
	case $1 in
	'#!'*) ;;
	*) return 0 ;;
	esac
	acp_interpreter=${1#'#!'}
	acp_interpreter=${acp_interpreter#"${acp_interpreter%%[! 	]*}"}
	acp_interpreter=${acp_interpreter%%[ 	]*}
	[ -e "$acp_interpreter" ]
}

acp_tell_path() {
	case $2 in
	*"$acp_n"*) return 0 ;;
	esac
	[ "${#2}" -gt 3000 ] || acp_tell "$acp_id $1 $2"
}

# $? does not distinguish exit(143) from SIGTERM, but the list of jobs does. bash must print the
# list before wait returns, so a trap does that.
acp_wait() {
	while :; do
		wait "$acp_pid"
		acp_status=$?
		[ -n "${BASH_VERSION-}" ] || jobs -l >"$acp_job"
		acp_read_state
		case $acp_line in
		Running* | Stopped*) ;;
		*) break ;;
		esac
	done
	case $acp_line in
	Done* | Exit*) acp_end="code $acp_status" ;;
	?*) acp_end="signal $((acp_status - 128))" ;;
	*) # the list could not be written down: the disk is full
		acp_end="unclear $acp_status"
		[ "$acp_status" -gt 128 ] || acp_end="code $acp_status"
		;;
	esac
}

# Sets acp_line to the state of the process in the last line of the list.
acp_read_state() {
	acp_line=
	while read -r acp_entry; do
		acp_line=${acp_entry#*"$acp_pid"}
	done <"$acp_job"
	acp_line=${acp_line#"${acp_line%%[! ]*}"}
}

# Returns when no member is left. Usually there is none. To be sure takes two looks at all of /proc:
# during one of them, a process may just be executing a program and show no environment.
acp_watch() {
	acp_except=$$
	acp_pause=0
	acp_suspects "$acp_token\\.$acp_id\\." "$$"
	if [ -z "$acp_found" ]; then
		sleep 0.05 || sleep 1
		acp_suspects "$acp_token\\.$acp_id\\." "$$"
		[ -n "$acp_found" ] || return 0
	fi
	while acp_members "$acp_token.$acp_id." "$$" && [ -n "$acp_found" ]; do
		case $acp_pause in
		0) acp_pause=0.1 ;;
		0.1) acp_pause=0.3 ;;
		*) acp_pause=1 ;;
		esac
		sleep "$acp_pause" || sleep 1
	done
}
