# SPDX-License-Identifier: MIT
# Prints a big file: first the blocks of 64 KiB that follow, as lines "FIRST COUNT" for each run,
# then an empty line, then the blocks. All other blocks are zeros. Arguments: its path after "./",
# and the size that was reported; it may have grown. Prints no words.
trap - EXIT
use_side
write_functions
is_plain_file "$1"
rm -rf "$work"
size=$2
facts=$(stat -c '%b %B' "$1")
held=$((${facts% *} * ${facts#* }))
total=$(((size + 65535) / 65536))
if [ $((held + 1048576)) -ge "$size" ]; then
	printf '0 %s\n\n' "$total"
	exec cat "$1"
fi

# Only cmp(1) can find zeros, so it checks at most 256 parts. Parts that it cannot compare count as
# data. Each newline on stderr shows progress.
step=$((total / 256 + 1)) at=0 first=0 rows=
[ "$step" -ge 16 ] || step=16
end_row() {
	[ "$first" -eq "$at" ] || rows="$rows$first $((at - first)) "
}

while [ "$at" -lt "$total" ]; do
	begin=$((at * 65536)) length=$((step * 65536))
	[ $((begin + length)) -le "$size" ] || length=$((size - begin))
	next=$((at + (length + 65535) / 65536))
	echo >&2
	if cmp -s -n "$length" "$1" /dev/zero "$begin" 0 2>/dev/null; then
		end_row
		first=$next
	fi
	at=$next
done
end_row
path=$1
set -- $rows
[ $# -eq 0 ] || printf '%s %s\n' "$@"
echo
while [ $# -gt 0 ]; do
	dd if="$path" bs=65536 skip="$1" count="$2" 2>/dev/null
	shift 2
done
