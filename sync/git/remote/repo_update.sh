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
# new repository appears whole.
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

[ "$shallow" = 0 ] || cp "$work/shallow" "$GIT_DIR/shallow"
if [ "$pack" = pack ]; then
	git index-pack --stdin -v >/dev/null
	[ "$GIT_DIR" != "$made" ] || ! share_packs || say shared
fi
sed 's/^\([0-9a-f]*\) \(.*\)$/update \2 \1/' "$work/refs" | git update-ref --stdin

# A file that is there is whole, wherever this is cut off.
keep() {
	printf '%s\n' "$2" >"$GIT_DIR/acp-broker/$1.new"
	mv -f "$GIT_DIR/acp-broker/$1.new" "$GIT_DIR/acp-broker/$1"
}

describe_head() {
	if at=$(git symbolic-ref -q HEAD); then
		printf 'branch %s %s\n' "${at#refs/heads/}" "$(git rev-parse -q --verify HEAD || :)"
	else
		printf 'detached  %s\n' "$(git rev-parse -q --verify HEAD || :)"
	fi
}

move_head() {
	old=$(git rev-parse -q --verify HEAD || :)
	if [ "$kind" = branch ]; then
		there=$(git rev-parse -q --verify "refs/heads/$branch" || :)
		if [ -n "$id" ]; then
			[ -z "$there" ] || [ "$there" = "$old" ] ||
				git merge-base --is-ancestor "$there" "$id" || return 0
			git update-ref -m 'moved with the workspace' "refs/heads/$branch" "$id"
		fi
		git symbolic-ref HEAD "refs/heads/$branch"
	else
		git update-ref -m 'moved with the workspace' --no-deref HEAD "$id"
	fi
	if [ -z "$id" ]; then
		rm -f "$GIT_DIR/index"
	elif [ -z "$old" ]; then
		git read-tree --reset "$id"
	else
		git read-tree -i -m "$old" "$id" 2>/dev/null || git read-tree --reset "$id"
	fi
}

# What the workspace leaves out on purpose is not deleted here either. The work tree is an empty
# one meanwhile, so that nothing of ROOT is written; and no path goes from being left out to being
# there while git looks, which would write it.
set_sparse() {
	[ "$sparse" ] || [ -f "$GIT_DIR/acp-broker/sparse" ] || return 0
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

left=
[ ! -f "$GIT_DIR/acp-broker/head" ] || read -r left <"$GIT_DIR/acp-broker/head" || :
now=$(describe_head)
if [ "$GIT_DIR" = "$made" ] || [ "$now" = "$left" ]; then
	wanted="$kind $branch $id"
	[ "$GIT_DIR" != "$made" ] && [ "$now" = "$wanted" ] || move_head
	keep head "$(describe_head)"
elif [ "$now" = "$kind $branch $id" ]; then
	keep head "$now"
else
	say kept "$now"
	print=
fi
set_sparse
# What is needed now comes first: repo_open.sh tells so many and no more.
{
	[ -z "$id" ] || printf '%s\n' "$id"
	cut -d ' ' -f 1 "$work/refs"
} | sort -u >"$work/sent"
: >"$work/before"
[ ! -f "$GIT_DIR/acp-broker/sent" ] || sort -u "$GIT_DIR/acp-broker/sent" >"$work/before"
comm -13 "$work/sent" "$work/before" >"$work/older"
cat "$work/sent" "$work/older" | head -n 20000 >"$GIT_DIR/acp-broker/sent.new"
mv -f "$GIT_DIR/acp-broker/sent.new" "$GIT_DIR/acp-broker/sent"
keep print "$print"
[ "$GIT_DIR" != "$made" ] || mv "$made" "$root/.git"
rm -rf "$work" || :
