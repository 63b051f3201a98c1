# SPDX-License-Identifier: MIT
# Comes before every script that prepares a sandbox for its agent. Starts in the sandbox's home. The
# answer consists of words that end in NUL. The last two are "done" and an empty word, or "failed"
# and the reason.
set -u
unset CDPATH ENV
state=.local/share/acp-broker

say() {
	printf '%s\0' "$@"
}

fail() {
	say failed "$1"
	exit 1
}

# Arguments: FILE TEXT. Writes a private file, completely or not at all.
note() {
	(umask 077 && mkdir -p "${1%/*}" && printf '%s\n' "$2" >"$1.$$") && mv -f "$1.$$" "$1"
}
