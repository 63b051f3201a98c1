# SPDX-License-Identifier: MIT
# Runs a command: the remote rsync. Arguments: SIDE CLEANS TELLS and the command. If CLEANS is not
# empty, the files that the last delivery left in SIDE are not needed any more. "yes" means that the
# script removes them first; any other word means that it moves them to a folder of that name. If
# TELLS is not empty, stderr says afterwards if rsync has replaced nothing.
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
