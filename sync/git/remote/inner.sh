# SPDX-License-Identifier: MIT
# Functions for repositories below the root whose history is in the sandbox.

# Goes to a folder below the root without following a link; makes the folder if $2 is "make". The
# agent may have chosen the path.
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

has_git() {
	[ -e "$1/.git" ] || [ -L "$1/.git" ]
}

# Sets $found to the repository at a path below the root, or fails. The repository is the folder
# .git there. If git has moved it (git-submodule(1), absorbgitdirs), .git is a file that names its
# folder. That folder must be in the `modules` of a repository below ROOT or around it.
find_repository() {
	found=$(
		enter "$1" '' && [ ! -L .git ] || exit 0
		if [ -f .git ]; then
			IFS= read -r line <.git || :
			to=${line#gitdir: }
			case $to in
			/* | ../*) ;;
			*) exit 0 ;;
			esac
			cd -P "$to" || exit 0
			case $PWD in
			"$top"/*/modules/* | "${top%"${inset:+/$inset}"}"/.git/modules/*) ;;
			*) exit 0 ;;
			esac
		else
			cd -P .git || exit 0
		fi 2>/dev/null
		[ ! -f HEAD ] || pwd -P
	)
	[ "$found" ]
}

is_own() {
	find_repository "$1" && [ -f "$found/acp-broker/sent" ]
}
