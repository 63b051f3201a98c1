# SPDX-License-Identifier: MIT
# Arguments: ROOT SIDE. Tells, in words that end in NUL, a hash of the names, both times, sizes,
# modes and inodes of all that may travel of ROOT; the id of this boot; the newest time of change,
# in seconds, and as a time of day with its fraction; what SIDE's file system takes for now; the
# seconds since the boot; and "end".
set -eu
export LC_ALL=C TZ=UTC0
root=$1 side=$2
boot=- uptime=0
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || boot=-
{ read -r uptime rest </proc/uptime; } 2>/dev/null || uptime=0
(umask 077 && rm -f "$side/now" && : >"$side/now")
now=$(stat -c %Z "$side/now")
cd "$root"

# Where something cannot be looked at, a change that is still to come hides nothing.
facts() {
	find . \( -name .git -o -name '.acp-broker-*.tmp' \) -prune -o \
		-exec stat -c '%Z %z %y %s %f %d:%i %n' {} + 2>/dev/null ||
		echo 9999999999 - -
}

# The newest is the first, but for what is left of names with newlines.
facts | sort -r | {
	lines= seconds=9999999999 time=-
	for try in 1 2 3 4 5 6 7 8; do
		IFS= read -r line || break
		lines="$lines$line "
		case $line in
		[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]\ *)
			seconds=${line%% *} time=${line#* * }
			time=${time%% *}
			break
			;;
		esac
	done
	sum=$({
		printf '%s\n' "$lines"
		cat
	} | sha256sum)
	printf '%s\0' "${sum%% *}" "$boot" "$seconds" "$time" "$now" "${uptime%%.*}" end
}
