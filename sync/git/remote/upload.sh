# SPDX-License-Identifier: MIT
# Reads the content of a big file from stdin. Arguments: its id without the last digit; its size;
# and "all", or for a file with holes the runs of blocks of 64 KiB that stdin has, each as the first
# block and a count.
use_side
size=$2 blocks=$3
made=$root/.acp-broker-sync-$1.tmp

make_hole() {
	rm -f "$made"
	dd if=/dev/null of="$made" bs=1 count=0 seek="$size" iflag=fullblock 2>/dev/null &&
		[ "$(stat -c %s "$made")" = "$size" ]
}

put_blocks() {
	while [ $# -gt 0 ]; do
		dd of="$made" bs=65536 seek="$1" count="$2" iflag=fullblock conv=notrunc \
			2>"$work/said" || {
			cat "$work/said" >&2
			return 1
		}
		shift 2
	done
}

if [ "$blocks" = all ]; then
	cat >"$made"
else
	make_hole || fail blocks
	put_blocks $blocks
fi
write_functions
id=$(hash_content "$made" "$size")
if [ "${id%?}" != "$1" ]; then
	rm -f "$made"
	fail content
fi
rm -rf "$work" || :
