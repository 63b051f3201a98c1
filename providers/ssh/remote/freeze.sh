# SPDX-License-Identifier: MIT
# Freezes a process with all that it has started, and lets it go on. After members.sh. The two are
# never under way at once: who asks waits for the answer of the one before.

# Of the members in acp_found: who runs in acp_runners, with the parents of these in acp_parents,
# who stands still in acp_still. Who sleeps in the kernel ('D') finds the signal that it was sent
# before it returns from there.
acp_look() {
	acp_runners= acp_parents= acp_still=
	for acp_member in $acp_found; do
		{ read -r acp_stat <"/proc/$acp_member/stat"; } 2>/dev/null || continue
		acp_stat=${acp_stat##*) }
		case $acp_stat in
		[TtZX]*)
			acp_still="$acp_still $acp_member"
			continue
			;;
		D*)
			case " $acp_stopped " in
			*" $acp_member "*) continue ;;
			esac
			;;
		esac
		acp_stat=${acp_stat#? }
		acp_runners="$acp_runners $acp_member"
		acp_parents="$acp_parents $acp_member:${acp_stat%% *}"
	done
}

# Stops those who run; at first no one whose parent does, as a shell takes note of a job that is
# stopped.
acp_stop() {
	acp_now=
	for acp_member in $acp_parents; do
		if [ "$acp_round" -lt 8 ]; then
			case " $acp_runners " in
			*" ${acp_member#*:} "*) continue ;;
			esac
		fi
		acp_now="$acp_now ${acp_member%:*}"
	done
	kill -STOP $acp_now 2>/dev/null
	acp_stopped="$acp_stopped $acp_now"
}

# The process $1, whose shell is $2: until two looks find the same members, and none that runs.
# Who was stopped before is noted, and stays so afterwards.
acp_freeze_tree() {
	acp_except="$$ $2" acp_round=0 acp_stopped= acp_last=none
	if [ -e "$acp_run/frozen.$1" ]; then
		acp_tell "$1 frozen"
		return
	fi
	while [ "$acp_round" -lt 80 ]; do
		acp_members "$acp_token.$1." "$2"
		acp_look
		[ "$acp_round" -gt 0 ] || acp_before=$acp_still
		if [ -n "$acp_runners" ]; then
			acp_stop
			acp_last=none
		elif [ "$acp_found" = "$acp_last" ]; then
			echo "$acp_before" >"$acp_run/frozen.$1"
			acp_tell "$1 frozen"
			return
		else
			acp_last=$acp_found
			sleep 0.05 || sleep 1
		fi 2>/dev/null
		acp_round=$((acp_round + 1))
	done
	acp_go_on "$1" "$2"
	acp_tell "$1 unfrozen"
}

# Children first, who mostly have the greater numbers.
acp_go_on() {
	acp_except="$$ $2"
	acp_members "$acp_token.$1." "$2"
	acp_now=
	for acp_member in $(printf '%s\n' $acp_found | sort -rn); do
		case " $acp_before " in
		*" $acp_member "*) ;;
		*) acp_now="$acp_now $acp_member" ;;
		esac
	done
	kill -CONT $acp_now 2>/dev/null
}

acp_thaw_tree() {
	acp_before=
	{ read -r acp_before <"$acp_run/frozen.$1"; } 2>/dev/null
	acp_go_on "$1" "$2"
	rm -f "$acp_run/frozen.$1"
	acp_tell "$1 thawed"
}
