# SPDX-License-Identifier: MIT
# Tells the commits that the agent made. Arguments: TREE COUNT. stdin: commits that are known, a
# line each. Of more than COUNT the newest are told. Objects of TREE, in SIDE, are not.
tree=$1 count=$2
use_side
cat >"$work/known"
[ -f "$root/.git/HEAD" ] || exit 0
export GIT_DIR="$root/.git" GIT_ALTERNATE_OBJECT_DIRECTORIES="$side/objects"
unset GIT_INDEX_FILE
[ ! -f "$GIT_DIR/acp-broker/sent" ] || cat "$GIT_DIR/acp-broker/sent" >>"$work/known"
{
	git for-each-ref --format='%(objectname) %(refname)' refs/heads
	git symbolic-ref -q HEAD >/dev/null || printf '%s HEAD\n' "$(git rev-parse --verify HEAD)"
} >"$work/refs"
cut -d ' ' -f 1 "$work/refs" >"$work/tips"
[ -s "$work/tips" ] || exit 0
sed 's/^/^/' "$work/known" >>"$work/tips"
git rev-list --max-count="$count" --boundary --ignore-missing --stdin <"$work/tips" >"$work/commits"
sed '/^-/d' "$work/commits" >"$work/made"
[ -s "$work/made" ] || exit 0
while read -r id ref; do
	while read -r made; do
		[ "$made" != "$id" ] || say ref "$id" "${ref#refs/heads/}"
	done <"$work/made"
done <"$work/refs"
sed 's/^-//' "$work/commits" | git rev-list --objects --no-walk=unsorted --stdin |
	cut -d ' ' -f 1 | sort -u >"$work/all"
git ls-tree -r -t "$tree" | cut -f 1 | cut -d ' ' -f 3 | sort -u >"$work/there"
comm -23 "$work/all" "$work/there" >"$work/ids"
say objects "$(wc -l <"$work/ids" | tr -d ' ')"
git cat-file --batch --buffer <"$work/ids"
rm -rf "$work"
