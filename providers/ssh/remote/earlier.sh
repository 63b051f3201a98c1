# SPDX-License-Identifier: MIT
# Ends the processes that an earlier connection of the same broker left running, or a broker that
# was killed: the control of that connection may not have noticed yet that the connection is lost.
# Comes after members.sh, before anything is started.

# Ends the run whose folder was $1 on the machine $2, or prints why that is impossible. A runner may
# have no folder; then $1 is a name alone, "/acp-broker." and more (start.sh). $3 says how the
# connection ended:
#
#     lost    the run may still be working. So if another machine now answers under the same name,
#             this is no proof that the run has ended
#     idle    lost, but nothing ran there; the runner removes its folder when it notices the loss
#     over    the run has ended by itself
#     dead    its broker was killed. Nobody knows whether something ran there, or for how long its
#             broker has been dead. So only what still runs for certain keeps others from starting
#     orphan  like dead, but another broker may be using the run. So the runner itself decides
acp_end_earlier() {
	acp_name=${1##*/} acp_here=${acp_run##*/} # KIND.TOKEN.PID.BOOT.NAMESPACE
	acp_word=${acp_here#*.} acp_word=${acp_word%%.*}
	acp_name=${acp_name#*.} acp_here=${acp_here#*.*.*.}
	acp_there=${acp_name#*.*.} acp_name=${acp_name%%.*}
	if [ "$acp_there" = "$acp_here" ] && [ "$3" = orphan ]; then
		acp_said=$(acp_end_orphan "$1" "$acp_name")
	elif [ "$acp_there" = "$acp_here" ]; then
		acp_said=$(acp_kill_earlier "$1" "$acp_name" "$3")
	elif [ "${acp_there%.*}" = "${acp_here%.*}" ]; then
		acp_said=$(acp_end_unseen "$1" "$3" "$acp_name")
	elif [ "$3" != over ] && [ "$2" != "$(uname -n)" ]; then
		acp_said="it runs on $2, and this is $(uname -n)"
		acp_said=$(acp_say_left "$3" "$acp_name elsewhere" "$acp_said")
	else
		acp_said= # a restart of the machine has ended the run
	fi
	[ -z "$acp_said" ] || printf '%s\n' "$acp_said"
	case $acp_said in
	left*) return 1 ;;
	esac
}

# Says that the run may still be there. $1 is how its connection ended, $2 are the words for the run
# of a killed broker, $3 is the reason in all other cases.
acp_say_left() {
	case $1 in
	dead | orphan) printf 'kept %s\n' "$2" ;;
	*) printf 'left %s\n' "$3" ;;
	esac
}

# Runs in a subshell. Prints "ended COUNT" if it ended processes other than our shells, "left WHY"
# if some are still there, or "kept TOKEN WHY" if nothing can be said about a killed broker's run. A
# runner ends its processes itself, and also finds those without a mark.
acp_kill_earlier() {
	acp_run=$1 acp_token=$2 acp_how=$3 acp_except=$$ acp_rounds=16
	set -- $(grep -Fls -e "ACP_BROKER_RUN=$acp_token." /proc/[0-9]*/environ)
	if ! acp_end_runner "$acp_run" over && [ "$acp_how" != over ] && ! acp_try_tools; then
		acp_why="the program grep there does not find $acp_why,"
		acp_say_left "$acp_how" "$acp_token unseen" \
			"$acp_why so that nobody can say whether it still runs"
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

# Runs in a subshell. The same for a run that another broker may be using: asks the runner, and
# kills nothing itself.
acp_end_orphan() {
	acp_run=$1 acp_token=$2 acp_except=$$
	set -- $(grep -Fls -e "ACP_BROKER_RUN=$acp_token." /proc/[0-9]*/environ)
	if acp_ask_orphan "$acp_run"; then
		acp_members "$acp_token." # there are some if the runner was killed
	elif [ "$acp_heard" = 8 ]; then
		echo "kept $acp_token used"
		return
	else
		set --
		acp_members "$acp_token"
	fi
	if [ -n "$acp_found" ]; then
		echo "kept $acp_token unseen"
		return
	fi
	[ $# -eq 0 ] || echo "ended $#"
	[ ! -O "$acp_run" ] || rm -rf "$acp_run"
}

# Runs in a subshell. The run is on this machine, but we cannot see its processes: a container was
# restarted, or each connection has its own PID namespace. $1 is its folder, $2 is how its
# connection ended, $3 its token. Prints the same as acp_kill_earlier.
acp_end_unseen() {
	case $1 in
	/acp-broker.*)
		[ "$2" = over ] || acp_say_left "$2" "$3 unseen" \
			'it runs there, and is not to be seen from here'
		;;
	*/alive.*) acp_end_unseen_runner "$@" ;;
	*)
		if [ "$2" = orphan ]; then
			[ ! -d "$1" ] || echo "kept $3 unseen"
		else
			acp_order_end "$1"
		fi
		;;
	esac
}

acp_end_unseen_runner() {
	if [ "$2" = orphan ]; then
		acp_ask_orphan "$1"
	else
		acp_end_runner "$1" over
	fi
	if [ "$acp_heard" = 7 ] && [ ! -e "$1/left" ]; then
		[ -z "$acp_was_there" ] || echo 'ended 1'
		rm -rf "$1"
	elif [ "$acp_heard" = 8 ]; then
		echo "kept $3 used"
	elif [ -e "$1/left" ]; then
		echo "left some of its processes cannot be ended, and cannot be seen from here;" \
			"remove the folder $1 once they have ended"
	elif [ -p "$1/held" ] && [ "$2" = orphan ]; then
		echo "kept $3 unseen"
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

# Like acp_end_runner with "orphan" and a word of our own, which the answer has, too: an earlier one
# may be left there. Two that ask at once would take each other's answer, so the second waits, but
# not for one that was killed.
acp_ask_orphan() {
	acp_turns=0
	while [ -O "$1" ] && [ -p "$1/alive" ] && [ "$acp_turns" -lt 50 ] && ! mkdir "$1/asking"; do
		acp_turns=$((acp_turns + 1))
		sleep 0.1 || { sleep 1 && acp_turns=$((acp_turns + 9)); }
	done
	acp_end_runner "$1" "orphan $acp_word"
	acp_turns=$?
	rmdir "$1/asking"
	return "$acp_turns"
} 2>/dev/null

# Orders the runner whose folder is $1 (runner/alive.c) to end: $2 is "over", or "orphan WORD",
# which it obeys only if no broker uses it. Succeeds if the runner has ended with all of its
# processes. acp_was_there is "yes" if the runner was still running; acp_heard is 8 if a broker uses
# it, and 7 if nobody holds the folder any more.
#
# The runner holds the FIFO "held" open for writing. So the run has ended when the last writer of
# "held" has closed it, and the reader notices that. acp_opener also opens "held" for writing, and
# closes it at once: otherwise the reader would wait for a first writer. It does so again and again:
# the runner may have ended before the reader has begun. A runner that another broker uses writes a
# line there. It may stay there for a later reader that does not ask.
acp_end_runner() {
	acp_heard= acp_was_there=
	[ -O "$1" ] && [ -p "$1/held" ] && [ -p "$1/alive" ] && [ ! -e "$1/left" ] &&
		[ ! -L "$1/held" ] && [ ! -L "$1/alive" ] || return 1
	(exec <"$1/held" && acp_hear_end "used ${2#orphan }") >/dev/null &
	acp_reader=$!
	(: >"$1/held") &
	acp_opener=$!
	(printf '\n%s\n' "$2" >"$1/alive") &
	acp_writer=$! acp_tenths=0
	while acp_lives "$acp_reader" && [ "$acp_tenths" -lt "${acp_patience:-200}" ]; do
		if sleep 0.1; then
			acp_tenths=$((acp_tenths + 1))
		else
			acp_tenths=$((acp_tenths + 10))
			sleep 1
		fi
		if ! acp_lives "$acp_opener"; then
			wait "$acp_opener"
			(: >"$1/held") &
			acp_opener=$!
		fi
	done
	# Whoever has read the FIFO may have ended before the writer, which then ends, too.
	acp_tries=0
	while acp_lives "$acp_writer" && [ "$acp_tries" -lt 3 ] && sleep 0.1; do
		acp_tries=$((acp_tries + 1))
	done
	acp_lives "$acp_writer" || acp_was_there=yes # somebody has read the FIFO
	acp_kill_own "$acp_reader" "$acp_opener" "$acp_writer"
	wait "$acp_opener" "$acp_writer"
	wait "$acp_reader"
	acp_heard=$?
	[ "$acp_heard" = 7 ] && [ ! -e "$1/left" ]
} 2>/dev/null

# Reads "held" until its end, or until the line $1.
acp_hear_end() {
	while read -r acp_line; do
		[ "$acp_line" != "$1" ] || exit 8
	done
	exit 7
}

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
