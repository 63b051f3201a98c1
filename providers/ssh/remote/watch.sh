# SPDX-License-Identifier: MIT
# Ends the run where the control cannot: a shell of its own for each of two watches, beside
# the control. After members.sh.

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
