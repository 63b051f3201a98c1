# SPDX-License-Identifier: MIT
# Comes after inner.sh: functions for repositories below the root, including submodules, whose files
# are in the sandbox and whose history is not. Without further measures git would use the repository
# above, ROOT/.git, and commit their files there. So each gets a file .git (a stub) with which git
# fails; the error message tells what to do.
stub='gitdir: acp-broker has no history of this repository in the sandbox. Its files travel;'
stub="$stub commit them in your own workspace"

has_stub() {
	line=
	[ -f .git ] && [ ! -L .git ] || return 1
	IFS= read -r line <.git || :
	[ "$line" = "$stub" ]
}

# Fails if the agent has its own repository there.
set_stub() (
	enter "$1" make || exit 1
	has_stub || (set -C && printf '%s\n' "$stub" >.git) 2>/dev/null
)

remove_stub() (
	! enter "$1" '' || ! has_stub || rm -f .git
)

# Removes a stub whose folder will be something else. Files there that the agent may have made are
# moved to SIDE/away, for as long as the sandbox exists.
put_away() (
	is_own "$1" || exit 0
	cd "$root/$1"
	away=$side/away/$(date +%Y%m%dT%H%M%S)-$$-$(printf '%s' "$1" | git hash-object --stdin)
	if [ -d .git ]; then
		mkdir -p "$side/away" && mv -T .git "$away"
	else
		rm -f .git # what it names stays in ROOT/.git
	fi
)

# Whether the tree $1 has a file at the path $2, or on the way to it.
has_file_at() {
	way=$2
	while :; do
		case $(git cat-file -t "$1:$way" 2>/dev/null) in
		blob) return 0 ;;
		tree) return 1 ;;
		esac
		[ "$way" != "${way%/*}" ] || return 1
		way=${way%/*}
	done
}

# Removes what is in the way of the tree $1: stubs in places where it has no such folder, and
# repositories where it has a file.
remove_nested_for() {
	cat "$outer/.git/acp-broker/nested" "$side/inner" 2>/dev/null >"$work/were" || :
	while IFS= read -r path; do
		[ "$(git cat-file -t "$1:$path" 2>/dev/null)" = tree ] || remove_stub "$path"
		! has_file_at "$1" "$path" || put_away "$path"
	done <"$work/were"
}

is_there() {
	[ -e "./$1" ] || [ -L "./$1" ]
}

# Makes an empty folder for each submodule that git would report as missing; "H" and "S" are from
# git-ls-files(1) -t.
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

# git does not look into a submodule that it was told to skip. In a sparse checkout, git decides
# itself what is skipped, so there a submodule is not changed. A submodule with a history in the
# sandbox is not changed either.
sort_nested() {
	while IFS= read -r path; do
		if is_own "$path"; then
			[ "$lacks" ] || ! is_gitlink "$path" || printf '%s\0' "$path" >&5
		elif is_gitlink "$path"; then
			[ -z "$lacks" ] && set_stub "$path" || continue
			printf '%s\0' "$path" >&3
		else
			set_stub "$path" || continue
			printf '%s\n' "$path" | sed 's/[][*?\\]/\\&/g' |
				sed "s|.*|${inset:+/$inset}/&/|" >&4
		fi
		printf '%s\n' "$path"
	done <"$work/nested" >"$work/stubs" 3>"$work/skipped" 4>"$work/ignored" 5>"$work/looked"
}

# The first name for the submodule at a path in HEAD's .gitmodules; "" if there is none.
name_submodule() {
	way=${inset:+$inset/}$1
	git config --blob HEAD:.gitmodules --get-regexp '^submodule\..*\.path$' 2>/dev/null |
		while IFS= read -r line; do
			name=${line#submodule.}
			[ "$line" != "submodule.${name%".path $way"}.path $way" ] ||
				printf '%s\n' "${name%".path $way"}"
		done | head -n 1
}

# Without this, git regards a submodule as not initialised.
set_active() {
	tr '\000' '\012' <"$work/looked" | while IFS= read -r path; do
		name=$(name_submodule "$path")
		[ -z "$name" ] || git config --local "submodule.$name.active" >/dev/null ||
			git config --local "submodule.$name.active" true
	done || print=
}

unset_active() {
	name=$(name_submodule "$1")
	[ -z "$name" ] || git config --local --unset "submodule.$name.active" || :
}

remove_empty() {
	empty=$1
	while rmdir "./$empty" 2>/dev/null && [ "$empty" != "${empty%/*}" ]; do
		empty=${empty%/*}
	done
}

# Handles repositories that the user has turned into folders, or into submodules without a history.
forget_nested() {
	sort "$work/stubs" >"$work/stay"
	sort -u "$record" | comm -23 - "$work/stay" | sed '/./!d' >"$work/gone"
	while IFS= read -r path; do
		remove_stub "$path"
		put_away "$path"
		is_gitlink "$path" || {
			remove_empty "$path"
			continue
		}
		unset_active "$path"
		[ "$lacks" ] || git update-index --no-skip-worktree -- "$path" || print=
		is_there "$path" || (enter "$path" make) || :
	done <"$work/gone"
}

# Keeps git add -A from adding their files.
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
	[ ! -s "$work/looked" ] ||
		{
			git update-index -z --no-skip-worktree --stdin <"$work/looked" && set_active
		} || print=
	[ ! -s "$work/skipped" ] ||
		git update-index -z --skip-worktree --stdin <"$work/skipped" || print=
	exclude_nested
	keep nested "$(cat "$work/stubs")"
}
