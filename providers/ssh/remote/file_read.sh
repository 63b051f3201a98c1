# SPDX-License-Identifier: MIT
# Reads a file of at most DETAIL bytes: prints "content", NUL and the bytes. Then it prints NUL
# "whole" NUL if it has read the file to its end.
walk "$@"
look || missing
check_regular
[ "$size" -le "$detail" ] || answer large "$size"
[ -r "./$name" ] || answer failed 'Permission denied'
printf 'content\0'
# Does not follow a link or wait for a FIFO, in case one has taken the file's place.
if dd if="./$name" iflag=nofollow,nonblock bs=64k status=none; then
	printf '\0whole\0'
elif ! dd if=/dev/null iflag=nofollow,nonblock status=none 2>/dev/null &&
	[ -f "./$name" ] && [ ! -L "./$name" ] && cat "./$name"; then # this dd lacks the flags
	printf '\0whole\0'
fi
