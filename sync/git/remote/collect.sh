# SPDX-License-Identifier: MIT
# Tells what the root is. Arguments: BASE LIMIT PATHSPECS INCLUDES.
#
# BASE is the tree that the root was; its members stay members whatever the ignore rules
# say. Files over LIMIT bytes are measured only. PATHSPECS is what is looked for, INCLUDES
# what is also looked for where it is ignored: a line each. stdin: the big files of BASE,
# each ended by NUL.
base=$1 limit=$2 pathspecs=$3 includes=$4
use_side
rm -rf "$root"/.acp-broker-*.tmp
cat >"$work/base"
git cat-file -e "$base^{tree}" 2>/dev/null || fail missing
load_index "$base"

forget() {
	[ ! -s "$1" ] || git update-index -z --force-remove --stdin <"$1"
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
	[ -s "$work/seeds" ] && git update-index -z --index-info <"$work/seeds"
}

list_others >"$work/others" &
listing=$!
git diff-files -z --name-only --no-renames >"$work/changed"
wait "$listing"
depth=0
while [ "$depth" -lt 32 ] && [ -s "$work/others" ] && seed_nested; do
	list_others >"$work/others"
	depth=$((depth + 1))
done

if [ -s "$work/changed" ] || [ "$depth" -gt 0 ]; then
	git diff-files -z --name-only --diff-filter=D --no-renames >"$work/gone" &
	listing=$!
	git diff-files -z --name-only --diff-filter=d --no-renames >"$work/changed"
	wait "$listing"
	forget "$work/gone"
fi

# Writes those of the changed and new names that the tests of find(1) take to $work/$1.
# They are begun with "./", so that none of them is an option.
dot_names() {
	if [ -s "$1" ]; then
		xargs -0 printf './%s\0' <"$1"
	fi
}
select_names() {
	: >"$work/$1"
	if [ -s "$work/names" ]; then
		xargs -0 sh -c "find \"\$@\" -maxdepth 0 $2 -print0 2>/dev/null || :" find \
			<"$work/names" >"$work/$1"
	fi
}
{
	dot_names "$work/changed"
	dot_names "$work/others"
} >"$work/names"
over="-type f -size +${limit}c"
ours="-name '*.acp-conflict' -o -name '.acp-broker-*.tmp'"
select_names small "\\( -type f -o -type l \\) ! \\( $over \\) ! \\( $ours \\)"
select_names big "$over ! \\( $ours \\)"
select_names other "\\( $over -o ! -type f ! -type l \\)"
forget "$work/other"

tell_big() {
	export limit
	xargs -0 sh -c '. "$0"
		for path do
			is_plain_file "$path" && measure "$path" || continue
			if [ "$size" -gt "$limit" ]; then
				printf "%s\0" big "$id" "$mode" "$size" "${path#./}"
			else
				printf "%s\0" "$path" >>"$work/small"
			fi
		done' "$work/functions" <"$work/measured"
}
{
	cat "$work/big"
	dot_names "$work/base"
} >"$work/measured"
if [ -s "$work/measured" ]; then
	tell_big
fi

# One that cannot be read, or has a name that git refuses, is left as it was.
add_what_can_be() {
	xargs -0 -n 200 sh -c '
		git update-index --add --remove --replace -- "$@" 2>/dev/null && exit
		for path do
			git update-index --add --remove --replace -- "$path" ||
				printf "%s\0" left "${path#./}"
		done' add <"$work/small"
}
if [ -s "$work/small" ]; then
	git update-index -z --add --remove --replace --verbose --stdin <"$work/small" >&2 ||
		add_what_can_be
fi

tree=$(git write-tree)
keep_index known "$tree"
export GIT_INDEX_FILE="$side/known-$tree"
say tree "$tree" "$(git ls-files -z | tr -cd '\0' | wc -c | tr -d ' ')"
if [ "$tree" != "$base" ]; then
	{
		printf '%s\n' "$tree"
		git diff-tree -r -t --no-renames "$base" "$tree" | cut -d ' ' -f 4 |
			sed '/^0*$/d'
	} | sort -u >"$work/ids"
	say objects "$(wc -l <"$work/ids" | tr -d ' ')"
	git cat-file --batch --buffer <"$work/ids"
fi
[ -e "$root/.git" ] || [ -L "$root/.git" ] || say repository none
rm -rf "$work"
