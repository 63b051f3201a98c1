# SPDX-License-Identifier: MIT
# Writes a big file out: which blocks of 64 KiB come, a line "FIRST COUNT" of each row and an empty
# line, and then these. All others are zeros. Arguments: its path, after "./", and the size that it
# was said to have: it may grow. No words are told.
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

# Nothing but cmp(1) tells what is zero; so it is asked of 256 parts at most. What it cannot
# compare is taken for data. Each newline on stderr says that it goes on.
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
