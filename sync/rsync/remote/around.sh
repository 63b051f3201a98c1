# SPDX-License-Identifier: MIT
# Arguments: SIDE CLEANS TELLS and a command, rsync's other half. CLEANS not empty: what the last
# delivery has left in SIDE is needed no more, and goes first; into a folder of that name unless it
# is "yes". TELLS not empty: afterwards stderr says where nothing was replaced.
set -eu
side=$1 cleans=$2 tells=$3
shift 3

clean() (
	cd "$side"
	umask 077
	[ "$cleans" = yes ] || {
		mkdir -p "$cleans"
		mv backup again "$cleans"
	}
	rm -rf tmp backup again 2>/dev/null || {
		chmod -R u+rwX tmp backup again || :
		rm -rf tmp backup again
	}
	mkdir -p tmp backup again
)

[ -z "$cleans" ] || clean
[ "$tells" ] || exec "$@"
status=0
"$@" || status=$?
[ "$(ls -A "$side/backup")" ] || echo 'nothing replaced' >&2
exit "$status"
