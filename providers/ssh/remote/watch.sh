# SPDX-License-Identifier: MIT
# Ends the run if the control cannot. Two watches run beside the control, each in its own shell. A
# third one (acp_sweep) runs once, for earlier runs that have no shell any more. Comes after
# members.sh.

# Only the control holds the other end of this FIFO, so `read` returns when the control has ended.
# The line "over" has the same effect (earlier.sh).
acp_watch_control() {
	read -r acp_line <"$acp_run/alive"
	acp_end
}

# The control counts the heartbeats in a file. If no new one comes for acp_grace seconds, the link
# is lost.
acp_watch_beats() {
	acp_step=$((acp_grace / 3))
	[ "$acp_step" -le 20 ] || acp_step=20
	[ "$acp_step" -ge 1 ] || acp_step=1
	acp_last= acp_missed=0
	while sleep "$acp_step"; do
		[ -d "$acp_run" ] || exit 0 # somebody else has ended the run
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

# Whether the run in the folder $1 is ours, its control ran in this boot and PID namespace
# (acp_here), and that control has ended. Sets acp_token to the token of that run.
acp_is_dead() {
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	acp_rest=${1##*/acp-broker.}
	acp_token=${acp_rest%%.*} acp_rest=${acp_rest#*.}
	acp_pid=${acp_rest%%.*}
	case ${#acp_token}:$acp_token in
	32:*[!0-9a-f]*) return 1 ;;
	32:*) ;;
	*) return 1 ;;
	esac
	case $acp_pid in
	'' | *[!0-9]*) return 1 ;;
	esac
	[ "${acp_rest#*.}" = "$acp_here" ] || return 1
	acp_lives "$acp_pid" || return 0
	! grep -Fqs -e "ACP_BROKER_RUN=$acp_token" "/proc/$acp_pid/environ"
}

# Ends the runs beside this one whose control was killed together with its watches, or before it had
# started them. Does nothing if the boot or the PID namespace is unknown: then we cannot tell which
# machine this is, or which of its processes we can see.
acp_sweep() {
	acp_here=${acp_run##*/acp-broker.} # TOKEN.PID.BOOT.NAMESPACE
	acp_here=${acp_here#*.*.}
	case $acp_here in
	'' | .* | *.) return ;;
	esac
	for acp_folder in "${acp_run%/*}"/acp-broker.*; do
		# The other watches take care of our own run: ending it here would stop this watch,
		# too.
		[ "$acp_folder" != "$acp_run" ] || continue
		(
			! acp_is_dead "$acp_folder" || {
				acp_run=$acp_folder
				acp_end
			}
		)
	done
}
