# SPDX-License-Identifier: MIT
# Ends the run where the control cannot: a shell of its own for each of two watches, beside
# the control. And a third one, once, for runs before that had nobody left. After members.sh.

# The control holds the other end of this FIFO, and nobody else.
acp_watch_control() {
	read -r acp_line <"$acp_run/alive"
	acp_end
}

# The control counts the heartbeats in a file. No new one for acp_grace seconds: the link is cut.
acp_watch_beats() {
	acp_step=$((acp_grace / 3))
	[ "$acp_step" -le 20 ] || acp_step=20
	[ "$acp_step" -ge 1 ] || acp_step=1
	acp_last= acp_missed=0
	while sleep "$acp_step"; do
		acp_now=
		{ read -r acp_now <"$acp_run/beat"; } 2>/dev/null
		if [ "$acp_now" != "$acp_last" ]; then
			acp_last=$acp_now acp_missed=0
		else
			acp_missed=$((acp_missed + acp_step))
			[ "$acp_missed" -lt "$acp_grace" ] || break
		fi
	done
	acp_end
}

# Which machine this is, since when, and which of its processes are to be seen; in acp_here.
acp_place() {
	acp_here=
	{ read -r acp_here </proc/sys/kernel/random/boot_id; } 2>/dev/null
	acp_here="$acp_here $(ls -l /proc/self/ns/pid 2>/dev/null | grep -o '\[.*\]')"
}

# Whether the run in the folder $1 is ours, was controlled from here, and is no more.
acp_is_dead() {
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	case ${#acp_token}:$acp_token in
	32:*[!0-9a-f]*) return 1 ;;
	32:*) ;;
	*) return 1 ;;
	esac
	acp_pid= acp_there=
	{ read -r acp_pid acp_there <"$1/control"; } 2>/dev/null
	case $acp_pid in
	'' | *[!0-9]*) return 1 ;;
	esac
	[ "$acp_there" = "$acp_here" ] || return 1
	acp_lives "$acp_pid" || return 0
	! grep -Fqs -e "ACP_BROKER_RUN=$acp_token" "/proc/$acp_pid/environ"
}

# Writes down who controls this run, the process $1, and ends the runs beside it whose control
# and watches were killed together.
acp_sweep() {
	acp_place
	printf '%s\n' "$1 $acp_here" >"$acp_run/control"
	for acp_folder in "${acp_run%/*}"/acp-broker.*; do
		# Our own is for the other watches: here it would stop itself as well.
		[ "$acp_folder" != "$acp_run" ] || continue
		(
			acp_token=${acp_folder##*/acp-broker.}
			! acp_is_dead "$acp_folder" || {
				acp_run=$acp_folder
				acp_end
			}
		)
	done
}
