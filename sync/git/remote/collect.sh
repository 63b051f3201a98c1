# SPDX-License-Identifier: MIT
# Tells what the root is. Arguments: BASE LIMIT PATHSPECS INCLUDES COUNT MAX INNER BASES.
#
# BASE is the tree that the root was; its members stay members whatever the ignore rules
# say. Files over LIMIT bytes are measured only. PATHSPECS is what is looked for, INCLUDES
# what is also looked for where it is ignored: a line each. stdin: the big files of BASE,
# begun with "./", and the agent's commits that are known, each ended by NUL. At the end
# commits.sh tells of COUNT commits at most, also of the repositories below the root: INNER
# has a line for the path of each; BASES is for it, too. Where the big files are more than MAX bytes
# together, that is said, and none is read. Every program that is started costs time: where
# nothing has changed few are.
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

# git does not look into a repository below the root until the index has a file of it.
seed_nested() {
	xargs -0 sh -c 'for path do case $path in */)
			printf "100644 %s\t%s.acp-broker-seed.tmp\0" "$0" "$path" ;;
		esac; done' e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 \
		<"$work/others" >"$work/seeds"
	[ -s "$work/seeds" ] && insist add_seeds
}

add_seeds() {
	git update-index -z --index-info <"$work/seeds"
}

# Names for find(1) are begun with "./", so that none of them is an option.
dot_names() {
	if [ -s "$1" ]; then
		xargs -0 printf './%s\0' <"$1"
	fi
}

# Writes those of the names in $work/$1 that the tests of find(1) take to $work/$2.
select_names() {
	xargs -0 sh -c "find \"\$@\" -maxdepth 0 $3 -print0 2>/dev/null || :" find \
		<"$work/$1" >"$work/$2"
}

# Sorts what git-diff-files(1) told, of each path a letter and the path. It is asked again where
# that is more than one command line holds, or not told of the index as it is now.
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

# Writes what differs from the index to a file of $work. Arguments: the form, the file, a filter.
list_differing() {
	git diff-files -z "$1" --no-renames ${3+"$3"} >"$work/$2"
}

# Brings what has gone and what is new to the index, but for files: those are put into
# $work/small and $work/big.
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

# A big file of BASE that is not in the index is found there as well.
name_once() {
	sort -z -u "$work/base" >"$work/once"
	mv "$work/once" "$work/base"
}

# Sizes are asked for before anything is read: a sparse file has one that nobody would wait for.
# The sum of several may be more than a shell can count: it ends at the largest number that can be
# told (sync/git/lines.c).
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

# What cannot be read stays what it was in BASE, also where that was small.
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

# One that cannot be read, or has a name that git refuses, is left as it was. One that gets shorter
# while git reads it kills git, which leaves its lock: the index is of this run alone.
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

# A link named .gitmodules, too; but that is no failure of git's. What looks like one of its
# spellings is one where the index has not got it as a link.
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

if [ "$is_as_base" ]; then
	tree=$base
else
	tree=$(insist git write-tree)
	keep_index known "$tree"
fi
say tree "$tree"
if [ "$tree" != "$base" ]; then
	{
		printf '%s\n' "$tree"
		git diff-tree -r -t --no-renames "$base" "$tree" | cut -d ' ' -f 4 |
			sed '/^0*$/d'
	} | sort -u >"$work/ids"
	say objects "$(wc -l <"$work/ids" | tr -d ' ')"
	git cat-file --batch --buffer <"$work/ids"
fi
[ -e "$outer/.git" ] || [ -L "$outer/.git" ] || say repository none
