# SPDX-License-Identifier: MIT
# Finds the members of a run, and ends them. Used by the control and by the shell of every process.
#
# acp_run is the run's folder. acp_token is the run's name in the mark, a variable in the
# environment of everything that the run has started: ACP_BROKER_RUN=TOKEN in our own shells,
# ACP_BROKER_RUN=TOKEN.ID. in a process and what it starts. A member is a process that has the mark,
# or is in the session of a process that has it. A process that cleared its environment and left the
# session is no member.

# Reports one line to the control. The line must be so short that the FIFO takes it in one piece.
acp_tell() {
	printf '%s\n' "$*" >&9
}

# Whether a process exists and is no zombie.
acp_lives() {
	{ read -r acp_stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${acp_stat##*) } in
	[ZX]*) return 1 ;;
	esac
}

# Whether a process leads a group.
acp_leads() {
	{ read -r acp_stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	set -- "$1" ${acp_stat##*) }
	[ "$4" = "$1" ]
}

# Sets acp_found to the members with the mark $1, or in one of the sessions $2 and following, except
# the processes in acp_except.
acp_members() {
	acp_marked=$(grep -Fls -e "ACP_BROKER_RUN=$1" /proc/[0-9]*/environ)
	shift
	for acp_entry in $acp_marked; do
		acp_entry=${acp_entry#/proc/}
		set -- "$@" "${acp_entry%/*}"
	done
	acp_found=
	[ $# -gt 0 ] || return 0
	for acp_session do
		shift
		set -- "$@" -e ") [^ZX] [0-9]* [0-9]* $acp_session "
	done
	acp_select $acp_marked $(grep -ls "$@" /proc/[0-9]*/stat)
}

# Sets acp_found to a superset of the members with the mark $1, a regular expression, or in the
# session $2. If it is empty, there is no member.
acp_suspects() {
	acp_found=
	acp_select $(grep -ls -e "ACP_BROKER_RUN=$1" -e ") [^ZX] [0-9]* [0-9]* $2 " \
		/proc/[0-9]*/environ /proc/[0-9]*/stat)
}

# Sets acp_found to the members of a process group.
acp_group() {
	acp_found=
	acp_select $(grep -ls -e ") [^ZX] [0-9]* $1 " /proc/[0-9]*/stat)
}

acp_select() {
	for acp_entry do
		acp_entry=${acp_entry#/proc/}
		acp_entry=${acp_entry%/*}
		case " $acp_except $acp_found " in
		*" $acp_entry "*) continue ;;
		esac
		! acp_lives "$acp_entry" || acp_found="$acp_found $acp_entry"
	done
}

# Whether grep finds a process by its mark, even if that is not the first variable of the process,
# and by its session. Everything above requires this. On failure, acp_why says what grep does not
# find.
acp_try_tools() {
	env -i ACP_FIRST=1 PATH="$PATH" ACP_BROKER_RUN="$acp_token.0." sleep 60 \
		</dev/null >/dev/null &
	acp_pid=$! acp_tries=0
	acp_why='a variable in the environment of a process'
	while [ "$acp_tries" -lt 40 ]; do # until sleep has been executed
		acp_tries=$((acp_tries + 1))
		acp_found=$(grep -Fls -e "ACP_BROKER_RUN=$acp_token.0." /proc/none/environ \
			"/proc/$acp_pid/environ")
		[ -z "$acp_found" ] || break
		[ "$acp_tries" -lt 10 ] || sleep 0.05 || sleep 1
	done
	if [ -n "$acp_found" ] && [ -n "$(grep -ls -e "ACP_BROKER_RUN=$acp_token\\.0\\." \
		"/proc/$acp_pid/environ")" ]; then
		acp_why='a process by its session'
		read -r acp_stat </proc/self/stat # not every caller leads its session
		set -- ${acp_stat##*) }
		acp_found=$(grep -ls -e ") [^ZX] [0-9]* [0-9]* $4 " "/proc/$acp_pid/stat")
		[ -z "$acp_found" ] || acp_why=
	fi
	kill -KILL "$acp_pid"
	wait "$acp_pid"
	[ -z "$acp_why" ]
} 2>/dev/null

# Kills every process that the given command finds. First stops the processes, so that they cannot
# fork, and kills them when a look finds no new ones. A single look that finds nothing proves
# nothing: a process that is just executing a program shows no environment, and a process that was
# just forked is not in the list yet. Fails if some are left after all rounds.
acp_kill() {
	acp_round=0 acp_stopped= acp_quiet=0
	while [ "$acp_round" -lt "${acp_rounds:-60}" ]; do
		"$@"
		if [ -z "$acp_found" ]; then
			[ "$acp_quiet" = 0 ] || return 0
			acp_quiet=1
			sleep 0.05 || sleep 1
			continue
		fi
		acp_quiet=0
		if [ "$acp_found" = "$acp_stopped" ] || [ "$acp_round" -gt 20 ]; then
			kill -KILL $acp_found
			acp_stopped=
			[ "$acp_round" -lt 10 ] || sleep 1
		else
			kill -STOP $acp_found
			acp_stopped=$acp_found
		fi
		acp_round=$((acp_round + 1))
	done 2>/dev/null
	return 1
}

# Removes the cgroup that the file $1 names (freeze.sh). If processes that could not be killed are
# still in it, continues them.
acp_drop_group() {
	{ read -r acp_group <"$1"; } 2>/dev/null || return 0
	rmdir "$acp_group" || echo 0 >"$acp_group/cgroup.freeze"
	rm -f "$1"
} 2>/dev/null

# Kills the process $1, whose shell is $2, and everything that it started.
acp_kill_tree() {
	acp_except="$$ $2"
	acp_kill acp_members "$acp_token.$1." "$2" || return
	acp_drop_group "$acp_run/group.$1"
	kill -CONT "$2" 2>/dev/null # it may have been stopped with its group
	acp_lives "$2" || acp_tell "$1 gone"
	acp_tell "$1 emptied"
}

# Kills the processes in the group of the shell $1, except that shell.
acp_kill_group() {
	acp_except="$$ $1"
	acp_kill acp_group "$1"
	kill -CONT "$1" 2>/dev/null
}

# Makes the calling process the one that ends the run. Only one process at a time may do that: two
# would stop each other for good. A second process waits to be killed, and takes over if the first
# one dies. The link "ending" names the process that ends the run. If another process takes over,
# the link "after.NUMBER" names it; NUMBER is that of the dead process. Nobody sees a link without
# its content, because ln makes both at once.
acp_take_end() {
	read -r acp_self acp_rest </proc/self/stat # in a subshell, $$ is the main shell
	acp_turn=ending acp_tries=0
	until ln -s "$acp_self" "$acp_run/$acp_turn" || [ "$acp_tries" -gt 20 ]; do
		[ -d "$acp_run" ] || exit 0
		acp_ender=$(readlink "$acp_run/$acp_turn")
		if [ -z "$acp_ender" ]; then
			acp_tries=$((acp_tries + 1)) # no link can be made there
			sleep 0.1 || sleep 1
		elif [ "$acp_ender" != "$acp_self" ] && acp_lives "$acp_ender"; then
			sleep 0.1 || sleep 1
		else
			acp_turn=after.$acp_ender
		fi
	done 2>/dev/null
}

# Starts the heir of this process, which ends the run. The heir takes over if this process is killed
# while all others are stopped. It waits for the end of a FIFO that only this process holds open for
# writing, and starts no process before that.
acp_name_heir() {
	acp_heir= acp_fifo=$acp_run/ender.$acp_self
	mkfifo "$acp_fifo" || return 0
	exec 7<>"$acp_fifo"
	(
		exec 6<"$acp_fifo" 7>&-
		read -r acp_line <&6
		exec 6<&-
		[ ! -d "$acp_run" ] || acp_end
	) </dev/null 8>&- 9>&- &
	acp_heir=$!
} 2>/dev/null

# Ends the run: every process that belongs to it, except the caller.
acp_end() {
	acp_take_end
	acp_name_heir
	acp_except="$acp_self $acp_heir"
	acp_kill acp_members "$acp_token"
	for acp_entry in "$acp_run"/group.*; do
		acp_drop_group "$acp_entry"
	done
	rm -rf "$acp_run"
	[ -z "$acp_heir" ] || kill -KILL "$acp_heir"
	exit 0
}
