# SPDX-License-Identifier: MIT
# Prints a big file as blocks of 64 KiB. Lines "FIRST COUNT" come first, one for each run of blocks
# that will follow; then an empty line; then these blocks. All other blocks of the file are zeros.
# Arguments: the path of the file, with "./" before it, and the size that was reported; the file may
# have grown since. Prints no words (sync/git/lines.h).
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

# Only cmp(1) can find zeros here, and each part takes one run of it. So the script checks at most
# 256 parts. Parts that cmp cannot compare count as data. Each newline on stderr shows progress.
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
