# SPDX-License-Identifier: MIT
# Argument: ROOT. Prints the files and folders below it that cannot be read, without the content of
# such folders: "./" and the path, each ended by NUL.
set -eu
cd "$1"
find . -name .git -prune -o \( -type d -o -type f \) -exec sh -c '
	for path do
		[ -r "$path" ] && { [ ! -d "$path" ] || [ -x "$path" ]; } || printf "%s\0" "$path"
	done' look {} + 2>/dev/null || :
