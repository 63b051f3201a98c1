# SPDX-License-Identifier: MIT
# Functions for repositories below the root that have a history of their own here.

# Goes to a folder below the root, and through no link; where $2 is "make" it is made. The path may
# be one that the agent has written.
enter() {
	cd "$root" || return 1
	top=$(pwd -P) rest=$1/
	while [ "$rest" ]; do
		part=${rest%%/*} rest=${rest#*/}
		case $part in
		'' | . | ..) return 1 ;;
		esac
		[ ! -L "$part" ] || return 1
		[ -d "$part" ] || [ "$2" != make ] || mkdir "$part" || return 1
		cd "./$part" || return 1
	done 2>/dev/null
	[ "$(pwd -P)" = "$top/$1" ]
}

# Whether there is a repository at a path below the root, in a folder .git of its own.
has_repository() {
	[ -f "$root/$1/.git/HEAD" ] && (enter "$1" '' && [ ! -L .git ])
}

is_own() {
	[ -f "$root/$1/.git/acp-broker/sent" ] && has_repository "$1"
}
