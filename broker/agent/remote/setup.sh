# SPDX-License-Identifier: MIT
# Runs lines of shell once for each home of a sandbox. Arguments: KEY DIRECTORY LINE...; KEY names
# these lines, which run in DIRECTORY. Prints "line" and a number before it runs each line; the
# output of the lines goes to stderr.
marker=$state/setup/$1 lock=$state/setup/$1.lock directory=$2
shift 2

finish() {
	say done ''
	exit 0
}

[ ! -e "$marker" ] || finish
(umask 077 && mkdir -p "${marker%/*}") || fail "$PWD/${marker%/*} cannot be made"
waited=0
until mkdir "$lock" 2>/dev/null; do # another broker runs them
	[ "$waited" -gt 0 ] || say wait "$PWD/$lock"
	[ ! -e "$marker" ] || finish
	owner=$(cat "$lock/owner" 2>/dev/null)
	if [ -z "$owner" ]; then
		[ "$waited" -lt 5 ] || rm -rf "$lock" # killed before it wrote "owner"
	elif ! kill -0 "$owner" 2>/dev/null; then
		rm -rf "$lock"
	fi
	waited=$((waited + 1))
	sleep 1
done
printf '%s\n' "$$" >"$lock/owner"
trap 'rm -rf "$lock"' EXIT
trap 'exit 1' HUP INT TERM
[ ! -e "$marker" ] || finish
number=0
for line do
	number=$((number + 1))
	say line "$number"
	(
		cd "$directory" || exit
		exec sh -c "$line"
	) </dev/null >&2 || fail "it ended with status $?"
done
note "$marker" "$number" || fail "$PWD/$marker cannot be written"
finish
