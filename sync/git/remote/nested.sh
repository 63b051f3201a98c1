# SPDX-License-Identifier: MIT
# Comes after inner.sh: functions for repositories below the root, including submodules, whose files
# are in the sandbox and whose history is not. git would use the repository above, ROOT/.git, and
# commit their files there. So each of their folders gets a file .git (a stub) that makes git fail
# with a message. The message tells what to do.
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

# Removes our repository from a folder that will be something else. The agent may have added to the
# repository, so the script moves it to SIDE/away, where it stays as long as the sandbox exists.
put_away() (
	is_own "$1" || exit 0
	cd "$root/$1"
	away=$side/away/$(date +%Y%m%dT%H%M%S)-$$-$(printf '%s' "$1" | git hash-object --stdin)
	if [ -d .git ]; then
		mkdir -p "$side/away" && mv -T .git "$away"
	else
		rm -f .git # the repository that it names stays
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

# Removes what is in the way of the tree $1: each stub at a path where the tree has no folder, and
# each of our repositories at or below a path where the tree has a file.
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

# Lists the submodules in the index, and makes an empty folder for each one that git would report as
# missing. git-ls-files(1) -t prints "S" for those that git was told to skip, and "H" for the
# others.
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

# Divides the repositories in $work/nested, and gives stubs to those without a history in the
# sandbox. git does not look into a submodule that it was told to skip:
#
#     skipped   submodules with a stub
#     looked    submodules with a history in the sandbox
#     ignored   patterns for repositories that are not submodules and have a stub
#
# In a sparse checkout, git decides itself which submodules it skips. So the script puts none of
# them into these lists there, and gives them no stub. $work/stubs gets all repositories that have a
# stub or a history.
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

# Prints the first name that HEAD's .gitmodules has for the submodule at a path. Prints nothing if
# there is none.
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

# Excludes the repositories in $work/ignored, so that `git add -A` does not add their files.
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
