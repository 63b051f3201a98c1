# SPDX-License-Identifier: MIT
# Reads a file of at most DETAIL bytes: after "content" and NUL come its bytes, then NUL "whole" NUL
# where they are all.
walk "$@"
look || missing
check_regular
[ "$size" -le "$detail" ] || answer large "$size"
[ -r "./$name" ] || answer failed 'Permission denied'
printf 'content\0'
# Neither through a link nor waiting for a FIFO, should one have come in its place.
if dd if="./$name" iflag=nofollow,nonblock bs=64k status=none; then
	printf '\0whole\0'
elif ! dd if=/dev/null iflag=nofollow,nonblock status=none 2>/dev/null &&
	[ -f "./$name" ] && [ ! -L "./$name" ] && cat "./$name"; then # a dd without these
	printf '\0whole\0'
fi
