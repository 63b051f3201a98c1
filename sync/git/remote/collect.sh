# SPDX-License-Identifier: MIT
# Reports the content of the root. Arguments (a list has one entry per line):
#
#     BASE        the root's tree at the last sync; its files stay members, whatever the ignore
#                 rules say
#     LIMIT       bytes; the script reports a larger file (a big file) without its content
#     PATHSPECS   which files to search for
#     INCLUDES    which files to include even if they are ignored
#     COUNT       how many commits commits.sh reports at most, including those of repositories
#                 below the root
#     MAX         bytes; if the big files have more together, the script reports this and reads none
#     INNER       the paths of repositories below the root
#     BASES       for commits.sh, like INNER
#
# stdin has the big files of BASE, whose paths start with "./", and the ids of the agent's known
# commits, each ended by NUL. Starting a program takes time, so if nothing has changed, the script
# starts only a few programs.
base=$1 limit=$2 pathspecs=$3 includes=$4 count=$5 max=$6 inner=$7 bases=$8
use_side
remove_remains
cat >"$work/asked"
: >"$work/base"
: >"$work/known"
: >"$work/small"
if [ -s "$work/asked" ]; then
	xargs -0 sh -c 'for word do case $word in
			./*) printf "%s\0" "$word" >&3 ;;
			*) printf "%s\n" "$word" ;;
		esac; done' split <"$work/asked" >"$work/known" 3>"$work/base"
fi
is_as_base=yes
take_index "$side/known-$base" || {
	is_as_base=
	need_tree "$base"
	make_index "$base"
}

forget() {
	[ ! -s "$1" ] || insist forget_paths "$1"
}

list_others() (
	set -f
	IFS='
'
	git ls-files -o -z --exclude-standard -- $pathspecs
	[ -z "$includes" ] || git ls-files -o -z -- $includes
)

# git looks into a repository below the root only if the index has a file of it.
seed_nested() {
	xargs -0 sh -c 'for path do case $path in */)
			printf "100644 %s\t%s.acp-broker-seed.tmp\0" "$0" "$path" ;;
		esac; done' e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 \
		<"$work/others" >"$work/seeds"
	[ -s "$work/seeds" ] && insist add_entries "$work/seeds"
}

add_entries() {
	git update-index -z --index-info <"$1"
}

# Names for find(1) start with "./", so that find takes none of them as an option.
dot_names() {
	if [ -s "$1" ]; then
		xargs -0 printf './%s\0' <"$1"
	fi
}

# Writes those names in $work/$1 that pass the tests $3 of find(1) to $work/$2.
select_names() {
	xargs -0 sh -c "find \"\$@\" -maxdepth 0 $3 -print0 2>/dev/null || :" find \
		<"$work/$1" >"$work/$2"
}

# Divides the output of git-diff-files(1), which has a letter and a path for each file, into
# $work/changed and $work/gone. Runs git again if the paths do not fit into one command line, or if
# the output is about an older index.
sort_dirty() {
	if [ "$depth" -eq 0 ] && [ "$(wc -c <"$work/dirty")" -lt 4096 ]; then
		xargs -0 sh -c 'while [ $# -gt 0 ]; do
				case $1 in
				D) printf "%s\0" "$2" >&3 ;;
				*) printf "%s\0" "$2" ;;
				esac
				shift 2
			done' sort <"$work/dirty" >"$work/changed" 3>"$work/gone"
		return
	fi
	insist list_differing --name-only gone --diff-filter=D &
	listing=$!
	insist list_differing --name-only changed --diff-filter=d
	wait "$listing"
}

# Writes the paths that differ from the index to the file $2 of $work. $1 is the form of the output
# for git-diff-files(1), $3 a filter.
list_differing() {
	git diff-files -z "$1" --no-renames ${3+"$3"} >"$work/$2"
}

# Removes missing files from the index, and paths that are neither a file nor a link any more. New
# and changed files and links go into $work/small, or into $work/big if they are big.
look_closer() {
	need_tree "$base"
	depth=0
	while [ "$depth" -lt 32 ] && [ -s "$work/others" ] && seed_nested; do
		list_others >"$work/others"
		depth=$((depth + 1))
	done
	: >"$work/changed"
	if [ -s "$work/dirty" ] || [ "$depth" -gt 0 ]; then
		sort_dirty
		forget "$work/gone"
	fi
	{
		dot_names "$work/changed"
		dot_names "$work/others"
	} >"$work/names"
	[ -s "$work/names" ] || return 0
	over="-type f -size +${limit}c"
	ours="-name '*.acp-conflict' -o -name '.acp-broker-*.tmp'"
	select_names names small "\\( -type f -o -type l \\) ! \\( $over \\) ! \\( $ours \\)"
	select_names names big "$over ! \\( $ours \\)"
	select_names names other "\\( ! -type f ! -type l -o $over \\( $ours \\) \\)"
	forget "$work/other"
	cat "$work/big" >>"$work/base"
}

list_others >"$work/others" &
listing=$!
insist list_differing --name-status dirty
wait "$listing"
if [ -s "$work/dirty" ] || [ -s "$work/others" ]; then
	is_as_base=
	look_closer
fi

# list_others finds the big files of BASE, too, because they are not in the index. So this removes
# the duplicates.
name_once() {
	sort -z -u "$work/base" >"$work/once"
	mv "$work/once" "$work/base"
}

# Adds up the sizes of the big files before the script reads any: a sparse file may have a size that
# takes forever to read. The sum might exceed the numbers of the shell, so it stops at the largest
# number that can be reported (sync/git/lines.c).
tell_excess() {
	all=0 end=999999999999999999
	xargs -0 stat -c %s <"$work/base" >"$work/sizes" 2>/dev/null || :
	while read -r size; do
		all=$((size > end - all ? end : all + size))
	done <"$work/sizes"
	[ "$all" -gt "$max" ] || return 0
	xargs -0 sh -c 'most=0
		for path do
			size=$(stat -c %s "$path" 2>/dev/null) || continue
			[ "$size" -lt "$most" ] || { most=$size && largest=$path; }
		done
		printf "%s\0" over "$0" "${largest#./}"' "$all" <"$work/base"
	exit 0
}

# A file that cannot be read stays as it was in BASE, even if it was small there.
tell_big() {
	export limit
	write_functions
	: >"$work/told"
	xargs -0 sh -c '. "$0"
		for path do
			if ! is_plain_file "$path" || ! measure "$path"; then
				is_no_file "$path" || printf "%s\0" left "${path#./}"
			elif [ "$size" -gt "$limit" ]; then
				printf "%s\0" big "$id" "$mode" "$size" "${path#./}"
				printf "%s\0" "${path#./}" >>"$work/told"
			else
				printf "%s\0" "$path" >>"$work/small"
			fi
		done' "$work/functions" <"$work/base"
	[ -z "$has_big" ] || forget "$work/told"
}
has_big=
[ ! -s "$work/big" ] || has_big=yes
if [ -s "$work/base" ]; then
	[ -z "$has_big" ] || name_once
	tell_excess
	tell_big
fi

# A file that cannot be read, or whose name git refuses, stays as it was. If a file shrinks while
# git reads it, SIGBUS kills git, and git leaves its lock. The script removes that lock, which is
# safe because the index belongs only to this run.
add_what_can_be() {
	xargs -0 -n 200 sh -c '
		rm -f "$GIT_INDEX_FILE.lock"
		git update-index --add --remove --replace -- "$@" 2>/dev/null && exit
		for path do
			rm -f "$GIT_INDEX_FILE.lock"
			git update-index --add --remove --replace -- "$path" ||
				printf "%s\0" left "${path#./}"
		done
		rm -f "$GIT_INDEX_FILE.lock"' add <"$work/small"
}

# git also refuses a link named .gitmodules, but without failing. A link whose name resembles
# .gitmodules counts as refused if the index does not have it as a link.
tell_refused() {
	spelt="-iname '*.*g*i*t*m*o*d*u*l*e*s*' -o -name '*~[1-9]*'"
	select_names small links "-type l \\( $spelt \\)"
	[ -s "$work/links" ] || return 0
	xargs -0 sh -c 'for path do
			case $(git --literal-pathspecs ls-files -s -- "$path") in
			"120000 "*) ;;
			*) printf "%s\0" left "${path#./}" ;;
			esac
		done' tell <"$work/links"
}
if [ -s "$work/small" ]; then
	[ -z "$is_as_base" ] || need_tree "$base"
	is_as_base=
	git update-index -z --add --remove --replace --verbose --stdin <"$work/small" >&2 \
		2>"$work/said" || add_what_can_be
	[ ! -s "$work/said" ] || tell_refused
fi

# Lists the objects of the tree that BASE does not have.
list_ids() {
	{
		printf '%s\n' "$tree"
		git diff-tree -r -t --no-renames "$base" "$tree" | cut -d ' ' -f 4 |
			sed '/^0*$/d'
	} | sort -u >"$work/ids"
}

find_grown() {
	git cat-file --batch-check='%(objecttype) %(objectsize) %(objectname)' <"$work/ids" |
		sed -n "s/^blob \([0-9]\{${#limit},\} \)/\1/p" >"$work/sizes"
	grown=
	while read -r size id; do
		[ "$size" -le "$limit" ] || grown="$grown $id"
	done <"$work/sizes"
}

# A file that has grown over LIMIT since it was measured stays as in BASE. The next run finds it
# among the big files.
leave_grown() {
	git diff-tree -r -z --no-renames "$base" "$tree" >"$work/dirty"
	xargs -0 -n 2 sh -c 'set -f
		path=$2
		set -- $1
		case "$0 " in *" $4 "*)
			printf "%s\0" left "$path"
			printf "%s %s\t%s\0" "${1#:}" "$3" "$path" >&3 ;;
		esac' "$grown" <"$work/dirty" 3>"$work/entries"
	insist add_entries "$work/entries"
	tree=$(insist git write-tree)
	list_ids
}

if [ "$is_as_base" ]; then
	tree=$base
else
	tree=$(insist git write-tree)
	if [ "$tree" != "$base" ]; then
		list_ids
		find_grown
		[ -z "$grown" ] || leave_grown
	fi
	keep_index known "$tree"
fi
say tree "$tree"
if [ "$tree" != "$base" ]; then
	say objects "$(wc -l <"$work/ids" | tr -d ' ')"
	git cat-file --batch --buffer <"$work/ids"
fi
[ -e "$outer/.git" ] || [ -L "$outer/.git" ] || say repository none
