# SPDX-License-Identifier: MIT
# Arguments: the folder of ours, and a command. What the last delivery has left in the folder is
# needed no more: it is removed; then the command runs.
set -eu
side=$1
shift
(
	cd "$side"
	rm -rf tmp backup again 2>/dev/null || {
		chmod -R u+rwX tmp backup again
		rm -rf tmp backup again
	}
	umask 077
	mkdir -p tmp backup again
)
exec "$@"
