# SPDX-License-Identifier: MIT
# Changes the root from the tree FROM to the tree TO. Arguments: FROM TO SWAPS FEW.
#
# stdin has a stream for git-fast-import(1) that starts from FROM. If TO is another tree, the stream
# sets refs/acp-broker/to to a commit with TO, and asks for the id of its tree. If SWAPS is "swaps",
# the stream also sets refs/acp-broker/swaps to a commit with a file "swaps". That file lists the
# paths that differ and are a big file in FROM or TO. Each path has five fields, which end in NUL:
#
#     the path
#     its old state: "none", "small", or for a big file the id without its last digit
#     its new state: "none", "big" or "blob"
#     its new id, for a big file without its last digit
#     its new mode
#
# If only a few paths differ, none is deleted, and none is a big file, FEW has one line for each of
# them: the old mode and id, a tab, and the path. Otherwise FEW is empty. Each git command that
# reads the whole index takes longer than everything else together; for a few paths one such command
# is enough.
from=$1 to=$2 swaps=$3 few=$4 empty=4b825dc642cb6eb9a060e54bf8d69288fbee4904
use_side

# Whether the last existing folder on the way to a path is writable.
is_in_open_folder() {
	folder=./$1
	while folder=${folder%/*} && [ ! -d "$folder" ]; do
		:
	done
	[ -w "$folder" ]
}

# Reports that the paths in the file $2, each ended by NUL, are in the way, and exits. $1 says why.
fail_at() {
	[ ! -s "$2" ] || xargs -0 printf 'stuck\0%s\0' <"$2"
	fail "$1"
}

# Makes the folders of the paths in a file writable; exits if one of them cannot be made writable.
open_or_fail() {
	open_folders <"$1" >"$work/closed"
	[ ! -s "$work/closed" ] || fail_at closed "$work/closed"
}

# Prints those paths in the file $2 that the tree $1 has and that differ from it in the root.
find_unlike() {
	(
		export GIT_INDEX_FILE="$work/unlike"
		cp -p "$side/known-$from" "$GIT_INDEX_FILE" 2>/dev/null || :
		git read-tree --reset "$1" >&2
		git update-index -q --refresh >&2 || :
		[ ! -s "$2" ] ||
			xargs -0 git --literal-pathspecs diff-files -z --name-only -- <"$2"
		rm -f "$GIT_INDEX_FILE"
	)
}

count_paths() {
	tr -dc '\000' <"$1" | wc -c
}

# Finds the paths that have made git fail, and exits. Either git has refused to go from one tree to
# the other and changed nothing, or git has done everything except the files that it could not
# write.
fail_merge() {
	git diff-tree -r -z --no-renames --name-only --diff-filter=d "$old" "$new" >"$work/asked"
	find_unlike "$new" "$work/asked" >"$work/undone"
	if [ "$(count_paths "$work/undone")" -eq "$(count_paths "$work/asked")" ]; then
		git diff-tree -r -z --no-renames --name-only "$old" "$new" >"$work/asked"
		find_unlike "$old" "$work/asked" >"$work/undone"
	fi
	fail_at changed "$work/undone"
}

# Makes an index of the paths in FEW, as they are in FROM. It has no times, so git compares these
# files by content.
prepare_few() {
	printf '%s' "$few" >"$work/few"
	tab=$(printf '\t')
	while IFS= read -r line; do
		path=${line#*"$tab"}
		case $line in
		0\ *) printf '%s\n' "$path" >&4 ;;
		*)
			printf '%s\n' "$line" >&3
			printf '%s\0' "$path" >&6
			;;
		esac
		printf '%s\0' "$path" >&5
		is_in_open_folder "$path" || : >"$work/is_closed"
	done <"$work/few" 3>"$work/old" 4>"$work/new" 5>"$work/paths" 6>"$work/replaced"
	load_index "$from"
	GIT_INDEX_FILE=$work/index git update-index --index-info <"$work/old"
}

# Whether there is nothing at a path, and no link or file on the way to it.
is_free() {
	folder=./$1
	[ ! -e "$folder" ] && [ ! -L "$folder" ] || return 1
	while folder=${folder%/*} && [ "$folder" != . ]; do
		[ ! -L "$folder" ] || return 1
		[ -d "$folder" ] || [ ! -e "$folder" ] || return 1
	done
}

are_new_free() {
	while IFS= read -r path; do
		is_free "$path" || return 1
	done <"$work/new"
}

# git compares a file and replaces it a moment later. Somebody may write to it in between. So each
# file gets a second link first, where the file system allows links, and the link keeps what was
# written. give_back_written puts this content back if the delivered file is still unchanged. Making
# a link changes a time by which git knows the file. So the slow way below, which compares times,
# cannot do the same.
hold_replaced() {
	[ -s "$work/replaced" ] || return 0
	mkdir "$work/held"
	xargs -0 sh -c 'cp -lP --parents -- "$@" "$0"' "$work/held" <"$work/replaced" 2>/dev/null ||
		:
}

give_back_written() {
	[ -s "$work/replaced" ] || return 0
	(
		export GIT_INDEX_FILE="$work/index" GIT_WORK_TREE="$work/held"
		git update-index -q --refresh >&2 || :
		git diff-files -z --name-only --diff-filter=d >"$work/written"
	)
	[ -s "$work/written" ] || return 0
	xargs -0 sh -c 'for path do
			! git --literal-pathspecs diff-files --quiet -- "$path" ||
				mv -fT "$0/$path" "./$path"
		done' "$work/held" <"$work/written"
	return 1
}

preparing=
if [ "$few" ]; then
	prepare_few </dev/null >&2 &
	preparing=$!
fi
imported=0
git fast-import --quiet --force --done --depth=0 >"$work/told" || imported=$?
is_prepared=
if [ "$preparing" ]; then
	! wait "$preparing" || is_prepared=yes
fi
if [ "$imported" != 0 ]; then
	need_tree "$from"
	exit "$imported"
fi
if [ "$from" != "$to" ]; then
	read -r mode type told rest <"$work/told" || :
	[ "$told" = "$to" ] || fail stream
fi

# If files are in the way of new ones, the slow way below examines them.
if [ "$is_prepared" ] && are_new_free; then
	[ ! -f "$work/is_closed" ] || open_or_fail "$work/paths"
	hold_replaced
	GIT_INDEX_FILE=$work/index git update-index --refresh >&2 || {
		GIT_INDEX_FILE=$work/index git diff-files -z --name-only >"$work/undone"
		fail_at changed "$work/undone"
	}
	is_written=yes
	xargs -0 git --literal-pathspecs checkout -q "$to" -- <"$work/paths" >&2 || is_written=
	give_back_written || is_written=
	[ "$is_written" ] || {
		find_unlike "$to" "$work/paths" >"$work/undone"
		fail_at changed "$work/undone"
	}
	keep_index known "$to"
	rm -rf "$work" || :
	exit
fi
rm -f "$GIT_INDEX_FILE"

: >"$work/swaps"
if [ "$swaps" = swaps ]; then
	git cat-file blob refs/acp-broker/swaps:swaps >"$work/swaps"
	write_functions
fi
load_index "$from"

each_swap() {
	if [ -s "$work/swaps" ]; then
		xargs -0 -n 5 sh -c '. "$0"
			path=./$1 was=$2 becomes=$3 wanted=$4 wanted_mode=$5
			'"$1" "$work/functions" <"$work/swaps"
	fi
}

if [ "$from" != "$empty" ] || [ -s "$work/swaps" ]; then
	git diff-tree -r -z --no-renames --name-only "$from" "$to" >"$work/differs"
	each_swap 'printf "%s\0" "$1"' >>"$work/differs"
	[ ! -s "$work/differs" ] || open_or_fail "$work/differs"
fi

# The swapped paths are in neither tree while git goes from one to the other. The script replaces
# each of them in one step afterwards, so that there is always a file at the path. Here it checks
# that they have not changed.
each_swap 'case $was in
	none) ! exists "$path" || is_folder "$path" || move_aside "$path" ;;
	small) git diff-files --quiet -- ":(literal)$1" ;;
	*) is_plain_file "$path" && measure "$path" && [ "${id%?}" = "$was" ] ;;
	esac || {
		printf "%s\0" "$1" >>"$work/spoilt"
		printf "%s\n" "$path: it has changed" >&2
	}'
[ ! -s "$work/spoilt" ] || fail_at changed "$work/spoilt"
old=$from new=$to
if [ -s "$work/swaps" ]; then
	each_swap 'printf "%s\0" "$1" >>"$work/swapped"'
	insist forget_paths "$work/swapped"
	old=$(insist git write-tree)
	new=$(
		export GIT_INDEX_FILE="$work/index"
		git read-tree "$to"
		insist forget_paths "$work/swapped"
		insist git write-tree
	)
fi

# git would replace ignored files here. So the script moves them away, and ends the delivery if it
# cannot move one.
export new
git diff-tree -r -z --no-renames --name-only --diff-filter=A "$old" "$new" >"$work/added"
if [ -s "$work/added" ]; then
	write_functions
	xargs -0 sh -c '. "$0"
		for path do
			exists "./$path" || continue
			[ -f "./$path" ] && [ ! -L "./$path" ] &&
				[ "$(git hash-object --no-filters "./$path")" = \
					"$(git rev-parse -q --verify "$new:$path")" ] ||
				move_aside "./$path" || ! git check-ignore -q "./$path" ||
				{
					printf "%s\0" "$path" >>"$work/spoilt"
					printf "%s\n" "$path: it is in the way" >&2
				}
		done' "$work/functions" <"$work/added"
fi
[ ! -s "$work/spoilt" ] || fail_at changed "$work/spoilt"

each_swap '[ "$becomes" = none ] && [ "$was" != none ] || exit 0
	rm -f "$path"
	folder=${path%/*}
	while [ "$folder" != . ] && rmdir "$folder" 2>/dev/null; do
		folder=${folder%/*}
	done'
# With several processes git is faster, but first removes everything that it replaces. So only the
# first delivery, which replaces nothing, uses several.
known=known workers=1
[ "$from" != "$empty" ] || known=fresh workers=4
remove_nested_for "$to"
git -c checkout.workers="$workers" read-tree -m -u -v "$old" "$new" || fail_merge
# git does not report a file that it could not delete.
git diff-tree -r -z --no-renames --name-only --diff-filter=D "$old" "$new" >"$work/gone"
if [ -s "$work/gone" ]; then
	write_functions
	xargs -0 sh -c '. "$0"
		for path do
			! exists "./$path" || is_folder "./$path" || leads_through_link "./$path" ||
				printf "%s\0" "$path"
		done' "$work/functions" <"$work/gone" >"$work/undone"
	[ ! -s "$work/undone" ] || fail_at closed "$work/undone"
fi
each_swap 'set -e
	made=$root/.acp-broker-sync-small.tmp
	rm -f "$made"
	case $becomes in
	none) exit 0 ;;
	big) made=$root/.acp-broker-sync-$wanted.tmp ;;
	blob)
		if [ "$wanted_mode" = 120000 ]; then
			target=$(git cat-file blob "$wanted" && printf .)
			ln -s "${target%.}" "$made"
		else
			git cat-file blob "$wanted" >"$made"
		fi ;;
	esac
	[ "$wanted_mode" != 100755 ] || chmod +x "$made"
	mkdir -p "${path%/*}"
	if [ "$becomes" = big ]; then
		ln "$made" "$made.tmp" 2>/dev/null || cp "$made" "$made.tmp"
		made=$made.tmp
	fi
	! is_folder "$path" || rename_aside "$path" # what is ignored in it
	mv -fT "$made" "$path" 2>/dev/null || {
		rm -f "$path"
		mv -f "$made" "$path"
	}'
add_blobs() {
	git update-index -z --stdin <"$work/blobs"
}
if [ -s "$work/swaps" ]; then
	git read-tree --reset "$to"
	each_swap '[ "$becomes" != blob ] || printf "%s\0" "$path"' >"$work/blobs"
	insist add_blobs
fi
keep_index "$known" "$to"
remove_all "$root"/.acp-broker-sync-*.tmp
rm -rf "$work" || :
