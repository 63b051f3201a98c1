# SPDX-License-Identifier: MIT
# Makes ROOT/.git what the user's is in the eyes of who works there: the history, HEAD,
# the remote-tracking refs, a name. Arguments: KIND BRANCH ID NAME EMAIL REFS SHALLOW PACK
# PRINT SPARSE.
#
# KIND is "branch" or "detached", ID may be empty for an unborn branch; SPARSE is empty, or whether
# a sparse checkout is of cones, and a size. stdin: REFS bytes, lines of "ID NAME"; SHALLOW bytes,
# lines of ids; as many bytes of patterns as SPARSE says; and where PACK is "pack" a pack of what
# is missing. (They would not fit into an argument.) PRINT is kept once all is done, to be told the
# next time: nothing has to be done then. HEAD moves only where it still is as it was left by us. A
# new repository appears whole. In another this may be cut off anywhere: the next run goes on.
kind=$1 branch=$2 id=$3 name=$4 email=$5 refs=$6 shallow=$7 pack=$8 print=$9 sparse=${10}
cd "$root"
make_side
work=$side/work.$$
mkdir -p "$work"
# The next $1 bytes of stdin and not one more, to $2. head(1) may read ahead.
take_bytes() {
	: >"$2"
	[ "$1" = 0 ] || dd bs="$1" count=1 iflag=fullblock of="$2" 2>/dev/null || :
	[ "$(wc -c <"$2" | tr -d ' ')" = "$1" ] || fail stream
}
take_bytes "$refs" "$work/refs"
take_bytes "$shallow" "$work/shallow"
patterns=0
[ -z "$sparse" ] || patterns=${sparse#* }
take_bytes "$patterns" "$work/sparse"
made=$root/.acp-broker-sync-git.tmp
if [ -f "$root/.git/acp-broker/sent" ]; then
	export GIT_DIR="$root/.git"
else
	[ ! -e "$root/.git" ] || fail other
	rm -rf "$made"
	export GIT_DIR="$made"
	git init -q --bare --template= "$made" >&2
	mkdir -p "$made/acp-broker" "$made/info"
	printf '%s\n' '[core]' 'repositoryformatversion = 0' 'bare = false' 'filemode = true' \
		'logallrefupdates = true' >"$made/config"
	cp "$side/info/exclude" "$made/info/exclude"
	[ -z "$name" ] || git config user.name "$name"
	[ -z "$email" ] || git config user.email "$email"
fi
rm -f "$GIT_DIR/acp-broker/print"
git() {
	command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"
}
# What is in the history need not be sent for the files once more. SIDE has it for its own, for
# what becomes of ROOT/.git is the agent's affair.
share_packs() {
	for pack in "$made"/objects/pack/pack-*.pack; do
		index=${pack%.pack}.idx
		ln "$pack" "$index" "$side/objects/pack/" 2>/dev/null || return 1
	done
}

# A file that is there is whole, wherever this is cut off.
keep() {
	printf '%s\n' "$2" >"$GIT_DIR/acp-broker/$1.new" &&
		mv -f "$GIT_DIR/acp-broker/$1.new" "$GIT_DIR/acp-broker/$1"
}

# What a commit that is there has for parents is there, too, or it is in the list: the agent may
# have fetched more, or less, than there is here. So only commits that come now are added, and
# git fails with one that did not come.
list_missing() {
	git cat-file --batch-check <"$work/shallow" | sed -n 's/ missing$//p' >"$work/missing"
	[ ! -f "$GIT_DIR/acp-broker/missing" ] ||
		cat "$GIT_DIR/acp-broker/missing" >>"$work/missing"
	[ ! -s "$work/missing" ] || keep missing "$(cat "$work/missing")"
}

# As git locks its list: it writes the whole of it anew, with what it has fetched. A lock of one of
# our runs that was cut off has a word of ours in it.
lock_shallow() {
	owner=
	[ ! -f "$GIT_DIR/shallow.lock" ] || IFS= read -r owner <"$GIT_DIR/shallow.lock" || :
	[ "$owner" != acp-broker ] || rm -f "$GIT_DIR/shallow.lock"
	(set -C && echo acp-broker >"$GIT_DIR/shallow.lock") 2>/dev/null
}

add_shallow() {
	git cat-file --batch-check <"$GIT_DIR/acp-broker/missing" | sed -n 's/ commit .*//p' \
		>"$work/added"
	[ ! -f "$GIT_DIR/shallow" ] || cat "$GIT_DIR/shallow" >>"$work/added"
	sort -u "$work/added" >"$GIT_DIR/acp-broker/shallow.new"
	mv -f "$GIT_DIR/acp-broker/shallow.new" "$GIT_DIR/shallow"
	rm -f "$GIT_DIR/shallow.lock"
	rm -f "$GIT_DIR/acp-broker/missing"
}

# The next run goes on: git here is at work.
leave_locked() {
	[ "$GIT_DIR" != "$made" ] || exit 1
	say kept locked
	rm -rf "$work" || :
	exit 0
}
[ "$shallow" = 0 ] || list_missing
if [ "$pack" = pack ]; then
	git index-pack --stdin -v >/dev/null
	[ "$GIT_DIR" != "$made" ] || ! share_packs || say shared
fi
if [ -f "$GIT_DIR/acp-broker/missing" ]; then
	lock_shallow || leave_locked # no ref may lead to what has no parents and is not in the list
	add_shallow
fi
# Before a branch has one of these commits: else it would be taken for the agent's. What is needed
# now comes first: repo_open.sh tells so many and no more.
{
	[ -z "$id" ] || printf '%s\n' "$id"
	cut -d ' ' -f 1 "$work/refs"
} | sort -u >"$work/sent"
: >"$work/before"
[ ! -f "$GIT_DIR/acp-broker/sent" ] || sort -u "$GIT_DIR/acp-broker/sent" >"$work/before"
comm -13 "$work/sent" "$work/before" >"$work/older"
sent=$(cat "$work/sent" "$work/older" | head -n 20000)
keep sent "$sent"

# Whether a commit is the user's: nothing is lost with a ref that leads there.
is_sent() {
	case $sent in
	*"$1"*) ;;
	*) return 1 ;;
	esac
}

list_refs() {
	git for-each-ref --format='%(objectname) %(refname)' "$1"
}

# Those that were sent and are no more go first: "topic" is in the way of "topic/new".
list_gone() {
	names=" $(cut -d ' ' -f 2 "$work/refs" | tr '\n' ' ')"
	while read -r at ref; do
		case $names in
		*" $ref "*) ;;
		*) ! is_sent "$at" || printf 'delete %s %s\n' "$ref" "$at" ;;
		esac
	done <"$work/differ"
}

# One that cannot be set, for one of the agent's is in its way, is in the way of no other.
set_refs() {
	sort "$work/refs" >"$work/wanted"
	list_refs refs/remotes | sort >"$work/there"
	comm -13 "$work/wanted" "$work/there" >"$work/differ"
	list_gone | git update-ref --stdin || print=
	sed 's/^\([0-9a-f]*\) \(.*\)$/update \2 \1/' "$work/refs" | git update-ref --stdin && return
	print=
	comm -23 "$work/wanted" "$work/there" >"$work/differ"
	while read -r at ref; do
		git update-ref "$ref" "$at" </dev/null || :
	done <"$work/differ"
}
set_refs

describe_head() {
	if at=$(git symbolic-ref -q HEAD); then
		printf 'branch %s %s\n' "${at#refs/heads/}" "$(git rev-parse -q --verify HEAD || :)"
	else
		printf 'detached  %s\n' "$(git rev-parse -q --verify HEAD || :)"
	fi
}

nothing=4b825dc642cb6eb9a060e54bf8d69288fbee4904
# From one commit to another, of which either may be none. What is there already stays.
move_index() {
	if [ -z "$2" ]; then
		rm -f "$GIT_DIR/index"
	else
		git read-tree -i -m "${1:-$nothing}" "$2" 2>/dev/null || git read-tree --reset "$2"
	fi
}

# What the workspace leaves out on purpose is not deleted here either. The work tree is an empty
# one meanwhile, so that nothing of ROOT is written; and no path goes from being left out to being
# there while git looks, which would write it.
set_sparse() {
	[ "$sparse" ] || [ -f "$GIT_DIR/acp-broker/sparse" ] || return 0
	[ ! -e "$GIT_DIR/index.lock" ] || {
		is_locked=yes
		return 0
	}
	# git would take those that are there for not left out, and leave the index as it is.
	git -c core.sparseCheckout=false ls-files -t | sed -n 's/^S //p' |
		git -c core.sparseCheckout=false update-index --no-skip-worktree --stdin
	if [ -z "$sparse" ]; then
		git config core.sparseCheckout false
		rm -f "$GIT_DIR/acp-broker/sparse"
		return
	fi
	keep sparse "$sparse"
	mkdir -p "$work/empty" "$GIT_DIR/info"
	cp "$work/sparse" "$GIT_DIR/info/sparse-checkout"
	git config core.sparseCheckout true
	git config core.sparseCheckoutCone "${sparse% *}"
	git --work-tree="$work/empty" sparse-checkout reapply >/dev/null ||
		printf '%s\n' 'the git here knows no sparse checkout' >&2
}

# Whether the branch can be set to the commit: without losing one of the agent's, which may be its
# own, or of a branch whose name is in the way. The latter are written down.
is_free() {
	: >"$work/in-the-way"
	[ "$kind" = branch ] || return 0
	list_refs "refs/heads/${branch%%/*}" >"$work/heads"
	while read -r at ref; do
		case $ref/ in
		"refs/heads/$branch/"*) ;;
		*) case refs/heads/$branch in
			"$ref"/*) ;;
			*) continue ;;
			esac ;;
		esac
		[ "$at" = "$base" ] || is_sent "$at" || {
			[ -n "$id" ] && git merge-base --is-ancestor "$at" "$id" </dev/null
		} || return 1
		[ "$ref" = "refs/heads/$branch" ] && [ -n "$id" ] ||
			printf 'delete %s %s\n' "$ref" "$at" >>"$work/in-the-way"
	done <"$work/heads"
}

# The index goes first: what the agent commits between the two takes nothing of the user's back.
# git may be at work there and have locked one of them.
move_head() {
	keep moving "$now
$wanted" || return 1
	move_index "$base" "$id" || return 1
	if [ "$kind" = detached ]; then
		git update-ref -m 'moved with the workspace' --no-deref HEAD "$id" || return 1
	else
		git update-ref --stdin <"$work/in-the-way" || return 1
		[ -z "$id" ] || git update-ref -m 'moved with the workspace' "refs/heads/$branch" \
			"$id" || return 1
		git symbolic-ref HEAD "refs/heads/$branch" || return 1
	fi
	keep head "$wanted"
	rm -f "$GIT_DIR/acp-broker/moving"
}

# What was begun by a run that did not come to its end: the index may have come to where HEAD was to
# go, and HEAD may be there, too, or have lost its branch.
take_up_move() {
	from= to=
	{ IFS= read -r from && IFS= read -r to; } <"$GIT_DIR/acp-broker/moving" || :
	case $now in
	"$from" | "$to" | "${from% *} ")
		is_ours=yes
		base=${to##* }
		move_index "${from##* }" "$base"
		;;
	*) rm -f "$GIT_DIR/acp-broker/moving" ;;
	esac
}

left= is_ours=
[ ! -f "$GIT_DIR/acp-broker/head" ] || IFS= read -r left <"$GIT_DIR/acp-broker/head" || :
now=$(describe_head)
wanted="$kind $branch $id"
base=${now##* }
[ "$GIT_DIR" != "$made" ] && [ "$now" != "$left" ] || is_ours=yes
is_locked=
[ ! -f "$GIT_DIR/acp-broker/moving" ] || take_up_move || is_locked=yes
if [ "$is_locked" ]; then
	:
elif [ "$now" = "$wanted" ] && [ "$base" = "$id" ] && [ "$GIT_DIR" != "$made" ]; then
	keep head "$now"
	rm -f "$GIT_DIR/acp-broker/moving"
elif [ -z "$is_ours" ] || ! is_free; then
	say kept "$now"
	print=
else
	move_head || is_locked=yes
fi
[ "$is_locked" ] || set_sparse
if [ "$is_locked" ]; then
	[ "$GIT_DIR" != "$made" ] || exit 1
	say kept locked
	print=
fi
keep print "$print"
[ "$GIT_DIR" != "$made" ] || mv "$made" "$root/.git"
rm -rf "$work" || :
