# SPDX-License-Identifier: MIT
# Functions for repositories below the root, submodules among them: their files are here, their
# history is not. git would look for it above, in ROOT/.git, and commit their files there. So each
# has a file .git with which git fails, and what to do stands in its message.
stub='gitdir: acp-broker has no history of this repository in the sandbox. Its files travel;'
stub="$stub commit them in your own workspace"

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

has_stub() {
	line=
	[ -f .git ] && [ ! -L .git ] || return 1
	IFS= read -r line <.git || :
	[ "$line" = "$stub" ]
}

# Fails where the agent has a repository of its own there.
set_stub() (
	enter "$1" make || exit 1
	has_stub || (set -C && printf '%s\n' "$stub" >.git) 2>/dev/null
)

remove_stub() (
	! enter "$1" '' || ! has_stub || rm -f .git
)

# Where there is no such folder in the tree $1, ours is in the way of what is.
remove_stubs_for() {
	[ -f "$root/.git/acp-broker/nested" ] || return 0
	while IFS= read -r path; do
		[ "$(git cat-file -t "$1:$path" 2>/dev/null)" = tree ] || remove_stub "$path"
	done <"$root/.git/acp-broker/nested"
}

is_there() {
	[ -e "./$1" ] || [ -L "./$1" ]
}

# An empty folder for each submodule that git would miss; "H" and "S" as git-ls-files(1) -t says.
list_gitlinks() {
	tab=$(printf '\t')
	git ls-files -t -s -z | tr '\012\000' '?\012' |
		sed -n "s/^\\([HS]\\) 160000 [^$tab]*$tab/\\1 /p" >"$work/gitlinks"
	while IFS= read -r line; do
		path=${line#? }
		[ "$line" = "S $path" ] || is_there "$path" || (enter "$path" make) || :
	done <"$work/gitlinks"
}

is_gitlink() {
	case "$gitlinks
" in
	*"
$1
"*) ;;
	*) return 1 ;;
	esac
}

# git does not look into a submodule that it is told to skip. A sparse checkout has its own idea of
# what is skipped: there a submodule stays as it is.
sort_nested() {
	while IFS= read -r path; do
		if is_gitlink "$path"; then
			[ -z "$sparse" ] && set_stub "$path" || continue
			printf '%s\0' "$path" >&3
		else
			set_stub "$path" || continue
			printf '%s\n' "$path" | sed 's/[][*?\\]/\\&/g; s/.*/\/&\//' >&4
		fi
		printf '%s\n' "$path"
	done <"$work/nested" >"$work/stubs" 3>"$work/skipped" 4>"$work/ignored"
}

# What the user has made a folder or a submodule without a history again.
forget_nested() {
	sort "$work/stubs" >"$work/stay"
	sort -u "$record" | comm -23 - "$work/stay" | sed '/./!d' >"$work/gone"
	while IFS= read -r path; do
		remove_stub "$path"
		is_gitlink "$path" || continue
		[ "$sparse" ] || git update-index --no-skip-worktree -- "$path" || print=
		is_there "$path" || (enter "$path" make) || :
	done <"$work/gone"
}

# git add -A takes none of their files.
exclude_nested() {
	mkdir -p "$GIT_DIR/info"
	[ -f "$GIT_DIR/info/exclude" ] || : >"$GIT_DIR/info/exclude"
	{
		sed '/^# acp-broker begins$/,/^# acp-broker ends$/d' "$GIT_DIR/info/exclude"
		[ ! -s "$work/ignored" ] || {
			echo '# acp-broker begins'
			cat "$work/ignored"
			echo '# acp-broker ends'
		}
	} >"$GIT_DIR/acp-broker/exclude.new"
	mv -f "$GIT_DIR/acp-broker/exclude.new" "$GIT_DIR/info/exclude"
}

set_nested() {
	record=$GIT_DIR/acp-broker/nested
	list_gitlinks
	[ -s "$work/nested" ] || [ -f "$record" ] || return 0
	[ -f "$record" ] || : >"$record"
	keep nested "$(sort -u "$work/nested" "$record")"
	gitlinks=$(printf '\n' && sed 's/^. //' "$work/gitlinks")
	sort_nested
	forget_nested
	[ ! -s "$work/skipped" ] ||
		git update-index -z --skip-worktree --stdin <"$work/skipped" || print=
	exclude_nested
	keep nested "$(cat "$work/stubs")"
}
