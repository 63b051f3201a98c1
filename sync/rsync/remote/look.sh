# SPDX-License-Identifier: MIT
# Looks at everything in ROOT. Arguments: ROOT SIDE KNOWN. Prints words that end in NUL:
#
#     HASH     a hash of the names, both times, sizes, modes and inodes of everything in ROOT that
#              may be synced
#     BOOT     the id of this boot
#     NEWEST   the newest time of change, in seconds; 0 from lists, which mark young files instead
#     TIME     the same time, as a time of day with its fraction; ".1" from lists
#     NOW      the time on SIDE's file system, in seconds
#     UPTIME   the seconds since the boot
#
# If KNOWN is the hash of the last look, "differs" and the differences follow: the changed files,
# and each changed folder, after "0", with the folders in it, after "1". If the script cannot list
# all of them, "many" follows instead. The last word is "end".
set -eu
export LC_ALL=C TZ=UTC0
umask 077
root=$1 side=$2 known=$3
boot=- uptime=0 mark=-
{ read -r mark </proc/sys/kernel/random/uuid; } 2>/dev/null || mark=-
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || boot=-
{ read -r uptime rest </proc/uptime; } 2>/dev/null || uptime=0
rm -f "$side/now" && : >"$side/now"
now=$(stat -c %Z "$side/now")
cd "$root"

tell() {
	printf '%s\0' "$1" "$boot" "$2" "$3" "$now" "${uptime%%.*}"
}

# ---- with GNU find and coreutils: two lists, which are kept for the next look ----

can_list() {
	word=$(find "$side/now" -newerct @0 -printf 'a a\0b b\0a a\0c\0' | sort -z | sort -zm - |
		uniq -zu | cut -zd' ' -f2- | head -zn -1 | tail -zn 1 | xargs -0r echo)
	[ "$word" = b ] && [ "$mark" != - ]
} 2>/dev/null

# A young file may change again without a new time. The script puts a mark of this look before it in
# the list, so that the file differs in the next look.
list() {
	find . -ignore_readdir_race \( -name .git -o -name '.acp-broker-*.tmp' \) -prune -o \
		-type d \( -newerct "@$((now - 3))" -fprintf "$side/folders" "$mark:" -o -true \) \
		-fprintf "$side/folders" '%C@ %T@ %m %D:%i %p\0' -o \
		\( -newerct "@$((now - 3))" -printf "$mark:" -o -true \) \
		-printf '%C@ %T@ %s %y%m %D:%i %p\0' >"$side/files"
} 2>/dev/null

# Writes the paths that differ between the lists of two looks to $side/$1. The paths begin in column
# $2. $3 is a last entry: if its path is the last one of the output, the output is complete and not
# too long.
find_differing() {
	printf '%s\0' "$3" | sort -zm "$side/$1-$known" "$side/$1.new" - | uniq -zu |
		cut -zd' ' -f"$2-" | sort -zu | head -zn 4000 >"$side/$1" || return
	[ "$(tail -zn 1 "$side/$1" | tr -d '\0')" = '~' ]
}

# Lists the changed folders and the folders in them. Fails if one of the changed folders no longer
# exists.
find_inside() {
	head -zn -1 "$side/folders" | xargs -0r sh -c '
		find "$@" -maxdepth 1 -type d -printf "%d%p\0"' folders >"$side/inside"
} 2>/dev/null

tell_differing() {
	if find_differing files 6 '~ ~ ~ ~ ~ ~' && find_differing folders 5 '~ ~ ~ ~ ~' &&
		find_inside; then
		printf 'differs\0'
		head -zn -1 "$side/files"
		cat "$side/inside"
	else
		printf 'many\0'
	fi
}

look_by_lists() {
	newest=0
	list || {
		newest=9999999999 # what we cannot read may change unseen
		printf '%s - - - - -\0' "$mark" >>"$side/files"
	}
	for list in files folders; do
		sort -z "$side/$list" >"$side/$list.new"
	done
	sums=$(sha256sum "$side/files.new" "$side/folders.new")
	sum=$(printf %s "$sums" | sha256sum)
	sum=${sum%% *}
	tell "$sum" "$newest" .1
	if [ "$sum" != "$known" ] && [ -f "$side/files-$known" ] &&
		[ -f "$side/folders-$known" ]; then
		tell_differing
	fi
	rm -f "$side/files" "$side/folders" "$side/inside" "$side"/files-* "$side"/folders-*
	for list in files folders; do
		mv "$side/$list.new" "$side/$list-$sum"
	done
}

# ---- without them: only a hash ----

# If a file cannot be read, prints a time in the far future, so that no change is missed.
facts() {
	find . \( -name .git -o -name '.acp-broker-*.tmp' \) -prune -o \
		-exec stat -c '%Z %z %y %s %f %d:%i %n' {} + 2>/dev/null ||
		echo 9999999999 - -
}

# The line with the newest time comes first; only remains of names with newlines may come before it.
look_by_hash() {
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
		tell "${sum%% *}" "$seconds" "$time"
	}
}

if can_list; then
	look_by_lists
else
	look_by_hash
fi
printf 'end\0'
