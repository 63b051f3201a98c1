# SPDX-License-Identifier: MIT
# Runs a command, the remote rsync. Arguments: SIDE CLEANS TELLS and the command. If CLEANS is not
# empty, what the last delivery left in SIDE is not needed any more and is removed first; it is
# moved to a folder of the name CLEANS instead, unless that is "yes". If TELLS is not empty, stderr
# says afterwards where nothing was replaced.
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
