# SPDX-License-Identifier: MIT
# Ends the processes that an earlier connection of the same broker left running: its control may not
# have noticed yet that the connection is lost. Comes after members.sh, before anything is started.

# Ends the run whose folder was $1 (a runner has only the name) on the machine $2, or says why that
# is impossible. $3 is "lost" if the run may still be working; then another machine under the same
# name is no proof that it has ended.
acp_end_earlier() {
	acp_name=${1##*/acp-broker.} # TOKEN.PID.BOOT.NAMESPACE
	acp_there=${acp_name#*.*.} acp_here=${acp_run##*/acp-broker.}
	acp_here=${acp_here#*.*.}
	if [ "$acp_there" = "$acp_here" ]; then
		acp_said=$(acp_kill_earlier "$1" "${acp_name%%.*}")
	elif [ "${acp_there%.*}" = "${acp_here%.*}" ] && [ "${1%/*}" = '' ]; then
		acp_said=
		[ "$3" != lost ] || acp_said='left it runs there, and is not to be seen from here'
	elif [ "${acp_there%.*}" = "${acp_here%.*}" ]; then
		acp_said=$(acp_order_end "$1")
	elif [ "$3" = lost ] && [ "$2" != "$(uname -n)" ]; then
		acp_said="left it runs on $2, and this is $(uname -n)"
	else
		acp_said= # the machine was restarted, which has ended the run
	fi
	[ -z "$acp_said" ] || printf '%s\n' "$acp_said"
	case $acp_said in
	left*) return 1 ;;
	esac
}

# In a subshell. Prints "ended COUNT" if there were processes other than our shells, or "left WHO"
# if some are still there.
acp_kill_earlier() {
	acp_run=$1 acp_token=$2 acp_except=$$ acp_rounds=16
	set -- $(grep -Fls -e "ACP_BROKER_RUN=$acp_token." /proc/[0-9]*/environ)
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

# In a subshell. The run is on this machine, but its processes cannot be seen from here: a container
# was restarted, or each connection has its own. Its watch reads a line in this FIFO as the end of
# the control, and removes the folder when it is done. If nobody reads the FIFO, no process is left.
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
