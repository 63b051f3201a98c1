# SPDX-License-Identifier: MIT
# Freezes a process with everything that it has started, and continues it. Comes after members.sh.
# Freezing and continuing never run at once, because the broker waits for the answer to the earlier
# order.

# Makes the cgroup (v2) for the process $1, below our own cgroup, so that all our limits still
# apply. Sets acp_group to its folder, acp_inside to its name in /proc/PID/cgroup, and acp_outside
# to the name of our own. Fails if there is no cgroup, or we may not write there. The cgroup stays
# until the process has ended.
acp_make_group() {
	acp_group= acp_outside=$(grep -s '^0::/' /proc/self/cgroup)
	acp_outside=${acp_outside#0::}
	[ -n "$acp_outside" ] || return 1
	acp_inside=${acp_outside%/}/acp-broker-$acp_token.$1
	for acp_mount in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		grep -qsx "$$" "$acp_mount$acp_outside/cgroup.procs" || continue
		[ -d "$acp_mount$acp_inside" ] || mkdir "$acp_mount$acp_inside" || return 1
		acp_group=$acp_mount$acp_inside
		echo "$acp_group" >"$acp_run/group.$1"
		return 0
	done
	return 1
}

# Moves the members in acp_found into the cgroup; sets acp_taken if one was outside of it. Fails if
# a member is in another cgroup, because somebody else has set the limits of that cgroup.
acp_take_in() {
	acp_taken=
	for acp_member in $acp_found; do
		acp_where=
		{ while read -r acp_line; do
			case $acp_line in 0::*) acp_where=${acp_line#0::} ;; esac
		done <"/proc/$acp_member/cgroup"; } 2>/dev/null
		case $acp_where in
		"$acp_inside" | "$acp_inside"/*) continue ;;
		"$acp_outside") acp_taken=yes ;;
		*) ! acp_lives "$acp_member" || return 1 ;;
		esac
		{ echo "$acp_member" >"$acp_group/cgroup.procs"; } 2>/dev/null ||
			! acp_lives "$acp_member" || return 1
	done
}

# Freezes the cgroup of the process $1, and moves members into it, until two looks in a row find no
# member outside of it, and the kernel reports that all members inside are frozen.
acp_freeze_group() {
	acp_make_group "$1" && echo 1 >"$acp_group/cgroup.freeze" || return 1
	acp_round=0 acp_quiet=
	while [ "$acp_round" -lt 20 ]; do
		acp_members "$acp_token.$1." "$2"
		acp_take_in || return 1
		if [ -n "$acp_taken" ] || ! grep -qsx 'frozen 1' "$acp_group/cgroup.events"; then
			acp_quiet=
		elif [ -n "$acp_quiet" ]; then
			return 0
		else
			acp_quiet=yes
		fi
		sleep 0.02 || sleep 1
		acp_round=$((acp_round + 1))
	done 2>/dev/null
	return 1
}

# Divides the members in acp_found: running ones go into acp_runners, and with their parents into
# acp_parents; stopped ones go into acp_still. A process that sleeps in the kernel ('D') and has got
# its signal goes into none: it stops before it returns from there.
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

# Stops the running members. In the first rounds it leaves out members whose parent is running,
# because a running shell would notice that its job was stopped.
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

# Freezes the process $1, whose shell is $2: by a cgroup if possible; otherwise by signals, until
# two looks in a row find the same members and none of them running. Processes that were stopped
# before are recorded, so that they stay stopped when the others continue.
acp_freeze_tree() {
	acp_except="$$ $2"
	if [ -e "$acp_run/frozen.$1" ]; then
		read -r acp_before <"$acp_run/frozen.$1"
		[ "$acp_before" = group ] && acp_tell "$1 frozen" || acp_tell "$1 frozen signals"
		return
	fi
	if acp_freeze_group "$1" "$2"; then
		echo group >"$acp_run/frozen.$1"
		acp_tell "$1 frozen"
		return
	fi
	[ -z "$acp_group" ] || echo 0 >"$acp_group/cgroup.freeze"
	acp_round=0 acp_stopped= acp_last=none
	while [ "$acp_round" -lt 80 ]; do
		acp_members "$acp_token.$1." "$2"
		acp_look
		[ "$acp_round" -gt 0 ] || acp_before=$acp_still
		if [ -n "$acp_runners" ]; then
			acp_stop
			acp_last=none
		elif [ "$acp_found" = "$acp_last" ]; then
			echo "$acp_before" >"$acp_run/frozen.$1"
			acp_tell "$1 frozen signals"
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

# Continues children before their parents; children mostly have the greater process numbers.
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
	if [ "$acp_before" = group ]; then
		read -r acp_group <"$acp_run/group.$1"
		echo 0 >"$acp_group/cgroup.freeze"
	else
		acp_go_on "$1" "$2"
	fi
	rm -f "$acp_run/frozen.$1"
	acp_tell "$1 thawed"
}
