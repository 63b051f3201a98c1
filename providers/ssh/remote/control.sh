# SPDX-License-Identifier: MIT
# The control is the shell in the first channel. It makes the run's folder, takes orders from stdin,
# and passes on the reports that the other shells write to a FIFO. When stdin ends, the control ends
# every process of the run.
#
# The caller sets acp_token, acp_grace (seconds), acp_sh, acp_n (a newline) and the text
# acp_library, and defines the functions acp_earlier (earlier.sh) and acp_tell_variables
# (variables.sh).
umask 077
acp_run=
exec 2>/dev/null

for acp_tool in cat env grep ln mkdir mkfifo mv readlink rm rmdir sleep sort uname; do
	command -v "$acp_tool" >/dev/null || acp_missing="${acp_missing-} $acp_tool"
done
if [ -n "${acp_missing-}" ]; then
	echo "fatal the host lacks the programs${acp_missing}"
	exit 1
fi
[ -r /proc/self/stat ] || {
	echo "fatal the host has no /proc"
	exit 1
}
# Some servers give a channel no session of its own (acp_serve explains the problem). Then this
# script, which was sent as one line, starts again in a new session.
read -r acp_stat </proc/$$/stat
set -- ${acp_stat##*) }
if [ "$3" != $$ ] && [ -z "${acp_led-}" ]; then
	command -v setsid >/dev/null || {
		echo "fatal the server gives a command no process group of its own, and the" \
			"program setsid, which makes one, is missing there"
		exit 1
	}
	exec setsid "$acp_sh" -c "acp_led=yes; $acp_line"
fi

# A background shell ignores some signals, and its children inherit that; a recent env(1) can undo
# it. env also removes variables that bash and busybox set for themselves.
acp_env="$(command -v env) -u _ -u SHLVL"
! $acp_env --default-signal true || acp_env="$acp_env --default-signal"
acp_quote() {
	acp_rest=$1 acp_quoted=
	while :; do
		case $acp_rest in
		*"'"*)
			acp_quoted="$acp_quoted${acp_rest%%"'"*}'\\''"
			acp_rest=${acp_rest#*"'"}
			;;
		*) break ;;
		esac
	done
	acp_quoted="'$acp_quoted$acp_rest'"
}

# The folder's name tells which broker and which process made it, and in which boot and PID
# namespace of the machine (a restart changes the boot, another container the namespace). So the
# name alone shows, from the first moment, whose run it is, and whether that run can be alive.
read -r acp_boot </proc/sys/kernel/random/boot_id
acp_space=$(readlink /proc/self/ns/pid)
acp_space=${acp_space##*[}
acp_name=acp-broker.$acp_token.$$.${acp_boot%%-*}.${acp_space%]}

# Makes the run's folder below $1, with all the files that the run needs. On failure, acp_why says
# what failed.
acp_make_run() {
	acp_run=$1/$acp_name
	acp_why='no folder can be made'
	mkdir "$acp_run" || return 1
	acp_quote "$acp_run"
	acp_why='no FIFO can be made'
	if mkfifo "$acp_run/events" "$acp_run/alive"; then
		acp_why='no room'
		printf '%s\n' "acp_run=$acp_quoted acp_token=$acp_token acp_grace=$acp_grace" \
			"acp_sh='$acp_sh' acp_env='$acp_env --'" "acp_n='$acp_n'" "$acp_library" \
			>"$acp_run/library" &&
			echo 0 >"$acp_run/beat" && return 0
	fi
	rm -rf "$acp_run"
	return 1
}
acp_tried=
for acp_base in "${XDG_RUNTIME_DIR-}" "${TMPDIR-}" /tmp /var/tmp "$HOME"; do
	case $acp_base in
	'' | *"$acp_n"*) continue ;;
	esac
	! acp_make_run "$acp_base" || break
	acp_tried="$acp_tried${acp_tried:+, }$acp_base ($acp_why)" acp_run=
done
if [ -z "$acp_run" ]; then
	echo "fatal no folder for the run can be made there: $acp_tried"
	exit 1
fi
. "$acp_run/library"
acp_try_tools || {
	echo "fatal the program grep there does not find $acp_why (some builds of busybox do" \
		"not), so that nothing could be ended there: install GNU grep, or another busybox"
	rm -rf "$acp_run"
	exit 1
}
printf 'node %s\n' "$(uname -n)"
acp_earlier || {
	rm -rf "$acp_run"
	exit 1
}

acp_tell_variables
printf 'ready %s\n' "$acp_run"

exec 8<>"$acp_run/alive" 9<>"$acp_run/events"
cat 0<>"$acp_run/events" 8>&- 9>&- &
exec >/dev/null
acp_helper() {
	"$acp_sh" -c '. "$0/library"; exec 9<>"$acp_run/events"; "$@"' "$acp_run" "$@" \
		</dev/null 8>&- 9>&- &
}
acp_helper acp_watch_control
acp_helper acp_watch_beats
acp_helper acp_sweep

acp_beats=0
while read -r acp_order acp_id acp_shell acp_signal; do
	case $acp_order in
	beat)
		acp_beats=$((acp_beats + 1))
		echo "$acp_beats" >"$acp_run/beat"
		jobs >/dev/null # makes the shell forget helpers that have ended
		;;
	look) acp_lives "$acp_shell" || acp_tell "$acp_id left" ;;
	signal) kill "-$acp_signal" "-$acp_shell" ;;
	kill-group) acp_helper acp_kill_group "$acp_shell" ;;
	kill) acp_helper acp_kill_tree "$acp_id" "$acp_shell" ;;
	release) acp_helper acp_release "$acp_id" ;;
	freeze) acp_helper acp_freeze_tree "$acp_id" "$acp_shell" ;;
	thaw) acp_helper acp_thaw_tree "$acp_id" "$acp_shell" ;;
	sync) acp_tell "$acp_id synced" ;;
	esac
done
acp_end
