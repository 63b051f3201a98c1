# SPDX-License-Identifier: MIT
# Ends the processes that an earlier connection of the same broker left running: the control of that
# connection may not have noticed yet that the connection is lost. Comes after members.sh, before
# anything is started.

# Ends the run whose folder was $1 on the machine $2, or prints why that is impossible. A runner may
# have no folder; then $1 is a name alone, "/acp-broker." and more (start.sh). $3 says how the
# connection ended:
#
#     lost   the run may still be working. So if another machine now answers under the same name,
#            this is no proof that the run has ended
#     idle   lost, but nothing ran there; the runner removes its folder when it notices the loss
#     over   the run has ended by itself
acp_end_earlier() {
	acp_name=${1##*/} acp_here=${acp_run##*/} # KIND.TOKEN.PID.BOOT.NAMESPACE
	acp_name=${acp_name#*.} acp_here=${acp_here#*.*.*.}
	acp_there=${acp_name#*.*.}
	if [ "$acp_there" = "$acp_here" ]; then
		acp_said=$(acp_kill_earlier "$1" "${acp_name%%.*}" "$3")
	elif [ "${acp_there%.*}" = "${acp_here%.*}" ]; then
		acp_said=$(acp_end_unseen "$1" "$3")
	elif [ "$3" != over ] && [ "$2" != "$(uname -n)" ]; then
		acp_said="left it runs on $2, and this is $(uname -n)"
	else
		acp_said= # a restart of the machine has ended the run
	fi
	[ -z "$acp_said" ] || printf '%s\n' "$acp_said"
	case $acp_said in
	left*) return 1 ;;
	esac
}

# Runs in a subshell. Prints "ended COUNT" if it ended processes other than our shells, or "left
# WHY" if some are still there. A runner ends its processes itself, and also finds those without a
# mark.
acp_kill_earlier() {
	acp_run=$1 acp_token=$2 acp_how=$3 acp_except=$$ acp_rounds=16
	set -- $(grep -Fls -e "ACP_BROKER_RUN=$acp_token." /proc/[0-9]*/environ)
	if ! acp_end_runner "$acp_run" && [ "$acp_how" != over ] && ! acp_try_tools; then
		echo "left the program grep there does not find $acp_why," \
			"so that nobody can say whether it still runs"
		return
	fi
	if ! acp_kill acp_members "$acp_token"; then
		acp_who=
		for acp_member in $acp_found; do
			acp_line=
			{ read -r acp_line <"/proc/$acp_member/comm"; } 2>/dev/null
			[ "${#acp_who}" -gt 300 ] || acp_who="$acp_who $acp_member ($acp_line)"
		done
		echo "left these processes cannot be ended:$acp_who"
		return
	fi
	[ $# -eq 0 ] || echo "ended $#"
	for acp_entry in "$acp_run"/group.*; do
		acp_drop_group "$acp_entry"
	done
	[ ! -O "$acp_run" ] || rm -rf "$acp_run"
}

# Runs in a subshell. The run is on this machine, but we cannot see its processes: a container was
# restarted, or each connection has its own PID namespace. Prints the same as acp_kill_earlier.
acp_end_unseen() {
	case $1 in
	/acp-broker.*)
		[ "$2" = over ] || echo 'left it runs there, and is not to be seen from here'
		;;
	*/alive.*) acp_end_unseen_runner "$@" ;;
	*) acp_order_end "$1" ;;
	esac
}

acp_end_unseen_runner() {
	if acp_end_runner "$1"; then
		[ -z "$acp_was_there" ] || echo 'ended 1'
		rm -rf "$1"
	elif [ -e "$1/left" ]; then
		echo "left some of its processes cannot be ended, and cannot be seen from here;" \
			"remove the folder $1 once they have ended"
	elif [ -p "$1/held" ]; then
		echo 'left it does not end on request, and its processes cannot be seen from here'
	elif [ "$2" = lost ]; then
		echo "left its folder $1 is gone, and its processes cannot be seen from here"
	fi
}

# Kills the given processes, if they are still our children: other processes may have their numbers
# by now.
acp_kill_own() {
	read -r acp_self acp_rest </proc/self/stat # in a subshell, $$ is the main shell
	for acp_child do
		read -r acp_stat <"/proc/$acp_child/stat" || continue
		set -- ${acp_stat##*) }
		[ "$2" != "$acp_self" ] || kill -KILL "$acp_child"
	done
}

# Orders the runner whose folder is $1 (runner/alive.c) to end. Succeeds if the runner has ended
# with all of its processes. acp_was_there is "yes" if the runner was still running.
#
# The runner holds the FIFO "held" open for writing. So the run has ended when the last writer of
# "held" has closed it, and the reader notices that. acp_opener also opens "held" for writing, and
# closes it at once: otherwise the reader would wait for a first writer.
acp_end_runner() {
	[ -O "$1" ] && [ -p "$1/held" ] && [ -p "$1/alive" ] && [ ! -e "$1/left" ] &&
		[ ! -L "$1/held" ] && [ ! -L "$1/alive" ] || return 1
	(exec <"$1/held" && ! read -r acp_line && exit 7) >/dev/null &
	acp_reader=$!
	(: >"$1/held") &
	acp_opener=$!
	(printf '\nover\n' >"$1/alive") &
	acp_writer=$! acp_tenths=0
	while acp_lives "$acp_reader" && [ "$acp_tenths" -lt "${acp_patience:-200}" ]; do
		if sleep 0.1; then
			acp_tenths=$((acp_tenths + 1))
		else
			acp_tenths=$((acp_tenths + 10))
			sleep 1
		fi
	done
	acp_was_there=
	acp_lives "$acp_writer" || acp_was_there=yes # somebody reads the FIFO
	acp_kill_own "$acp_reader" "$acp_opener" "$acp_writer"
	wait "$acp_opener" "$acp_writer"
	wait "$acp_reader"
	[ $? = 7 ] && [ ! -e "$1/left" ]
} 2>/dev/null

# Runs in a subshell. Orders a run of the scripts, whose folder is $1, to end. The watch of that run
# reads a line in the FIFO "alive" as the end of the control. So the watch ends the run, and then
# removes the folder. If nobody reads the FIFO, no process of the run is left.
acp_order_end() {
	[ -O "$1" ] && [ -p "$1/alive" ] || return 0
	(echo over >"$1/alive") &
	acp_writer=$! acp_tries=0
	while [ -d "$1" ] && [ "$acp_tries" -lt 30 ]; do
		acp_tries=$((acp_tries + 1))
		sleep 0.1 || sleep 1
	done
	if acp_lives "$acp_writer"; then
		kill -KILL "$acp_writer"
		rm -rf "$1"
	elif [ -d "$1" ]; then
		echo "left it does not end on request, and its processes cannot be seen from here"
	else
		echo "ended 1"
	fi
} 2>/dev/null
