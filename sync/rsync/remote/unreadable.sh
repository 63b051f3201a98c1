# SPDX-License-Identifier: MIT
# Argument: ROOT. Prints the files and folders below ROOT that this user cannot read, but not the
# content of such folders. Each is "./" and the path, and ends in NUL.
set -eu
cd "$1"
find . -name .git -prune -o \( -type d -o -type f \) -exec sh -c '
	for path do
		[ -r "$path" ] && { [ ! -d "$path" ] || [ -x "$path" ]; } || printf "%s\0" "$path"
	done' look {} + 2>/dev/null || :
