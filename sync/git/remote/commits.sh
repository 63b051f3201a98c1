# SPDX-License-Identifier: MIT
# Comes after collect.sh: reports the commits that the agent made. $work/known has the known ones,
# one per line. If a repository has more than $count new ones, the script reports none of them, but
# says so. It does not send objects of $tree again. If the root is a part of a repository, the
# parents of the commits are in the user's own repository; the script sends the objects of the
# parents only if $bases says so.
list_tips() {
	git for-each-ref --format='%(objectname) %(refname)' refs/heads
	read -r head <"$GIT_DIR/HEAD" || :
	case $head in
	ref:*) ;;
	*) printf '%s HEAD\n' "$(git rev-parse --verify HEAD)" ;;
	esac
}

has_new_tip() {
	known=$(cat "$work/known" "$GIT_DIR/acp-broker/sent" 2>/dev/null) || :
	while read -r id ref; do
		if [ "${#id}" != 40 ]; then
			echo 'fatal: the ids of its repository are no SHA-1' >&2
			exit 1
		fi
		case $known in
		*"$id"*) ;;
		*) return 0 ;;
		esac
	done <"$work/refs"
	return 1
}

list_commits() {
	{
		cut -d ' ' -f 1 "$work/refs"
		printf '%s\n' "$known" | sed '/./!d;s/^/^/'
	} >"$work/tips"
	git rev-list --max-count="$((count + 1))" --boundary --ignore-missing --stdin \
		<"$work/tips" >"$work/commits"
	sed '/^-/d' "$work/commits" | sort >"$work/made"
	if [ "$(wc -l <"$work/made")" -gt "$count" ]; then
		echo "fatal: more than $count are new" >&2
		exit 1
	fi
}

list_objects() {
	if [ -z "$inset" ] || [ "$bases" ]; then
		sed 's/^-//' "$work/commits" | git rev-list --objects --no-walk=unsorted --stdin
	else
		sed -n 's/^-//p' "$work/commits"
		sed 's/^-/^/' "$work/commits" | git rev-list --objects --stdin
	fi
}

tell_commits() {
	say commits
	sed -n 's/^-//p' "$work/commits" | while read -r base; do
		say base "$base"
	done
	tips=$(cut -d ' ' -f 1 "$work/refs" | sort -u | comm -12 - "$work/made")
	while read -r id ref; do
		case $tips in
		*"$id"*) say ref "$id" "${ref#refs/heads/}" ;;
		esac
	done <"$work/refs"
	list_objects | cut -d ' ' -f 1 | sort -u >"$work/all"
	git ls-tree -r -t "$tree" | cut -f 1 | cut -d ' ' -f 3 | sort -u >"$work/there"
	comm -23 "$work/all" "$work/there" >"$work/ids"
	say objects "$(wc -l <"$work/ids" | tr -d ' ')"
	git cat-file --batch --buffer <"$work/ids"
}

tell_repository() {
	export GIT_DIR="$1" GIT_ALTERNATE_OBJECT_DIRECTORIES="$side/objects"
	unset GIT_INDEX_FILE
	list_tips >"$work/refs"
	if has_new_tip; then
		list_commits
		[ ! -s "$work/made" ] || tell_commits
	fi
}

say_untold() {
	say untold "$(sed -n '/^fatal: /,$p' "$work/words" | tr -s '\n\t' ' ' | cut -c 1-200)"
}

# If this fails, the cause is in the agent's repository. The script reports the failure and goes on
# with the other repositories; the files are synced in any case.
try_repository() {
	: >"$work/made"
	set +e
	(
		set -e
		exec 2>"$work/words"
		tell_repository "$1"
	)
	status=$?
	set -e
	if [ "$status" = 0 ]; then
		count=$((count - $(wc -l <"$work/made")))
	else
		say_untold
	fi
}

end_commits() {
	status=$1
	trap - EXIT
	[ "$status" = 0 ] || say_untold
	rm -rf "$work" "$side/index.$$" || :
	printf 'end\0%s\0' 0
	exit
}

tell_inner() {
	say within "$1"
	if [ ! -e "$root/$1/.git" ] || (enter "$1" '' && has_stub); then
		say repository none
	elif find_repository "$1"; then
		try_repository "$found"
	fi
}

trap 'end_commits $?' EXIT
exec 2>"$work/words"
[ -f "$outer/.git/HEAD" ] || outer=$root inset= # the agent may have made one in ROOT
[ ! -f "$outer/.git/HEAD" ] || try_repository "$outer/.git"
inset=
printf '%s' "$inner" >"$work/inner"
while IFS= read -r path; do
	tell_inner "$path" </dev/null
done <"$work/inner"
