# SPDX-License-Identifier: MIT
# Makes ROOT/.git, or the one above it, what the user's is in the eyes of who works there: the
# history, HEAD, the other refs, a name, its filters, its remotes. Arguments: KIND BRANCH ID NAME
# EMAIL REFS SHALLOW PACK PRINT SPARSE FILTERS REMOTES NESTED PROMISOR BELOW.
#
# KIND is "branch" or "detached", ID may be empty for an unborn branch; SPARSE is empty, or whether
# a sparse checkout is of cones, and a size. stdin: REFS bytes, lines of "ID NAME"; SHALLOW bytes,
# lines of ids; as many bytes of patterns as SPARSE says; rules and two files of attributes, whose
# sizes FILTERS has (sync/git/filters.h), or it is empty; REMOTES bytes (sync/git/remotes.h); NESTED
# bytes, lines of paths (sync/nested.h); and where PACK is "pack" a pack of what is missing. (They
# would not fit into an argument.) PRINT is kept once all is done, to be told the next time: nothing
# has to be done then. PROMISOR is the remote of a partial clone, or empty. BELOW is the folder of
# a repository below ROOT, or empty: all this is done there, and ROOT stands for it from there on.
# HEAD moves only where it still is as it was left by us. A new repository appears whole. In another
# this may be cut off anywhere: the next run goes on.
kind=$1 branch=$2 id=$3 name=$4 email=$5 refs=$6 shallow=$7 pack=$8 print=$9 sparse=${10}
filters=${11} remotes=${12} nested=${13} promisor=${14} below=${15} whole=$root
cd "$root"
make_side
work=$side/work.$$
mkdir -p "$work"
# The next $1 bytes of stdin and not one more, to $2. head(1) may read ahead.
take_bytes() {
	: >"$2"
	[ "${1:-0}" = 0 ] || dd bs="$1" count=1 iflag=fullblock of="$2" 2>/dev/null || :
	[ "$(wc -c <"$2" | tr -d ' ')" = "${1:-0}" ] || fail stream
}
take_bytes "$refs" "$work/refs"
take_bytes "$shallow" "$work/shallow"
patterns=0
[ -z "$sparse" ] || patterns=${sparse#* }
take_bytes "$patterns" "$work/sparse"
# What the user has left out, and not only what is no part of the workspace.
lacks=$sparse
[ -z "$inset" ] || [ "$(cat "$work/sparse")" != "/$inset/" ] || lacks=
rest=${filters#* }
take_bytes "${filters%% *}" "$work/rules"
take_bytes "${rest% *}" "$work/attributes"
take_bytes "${rest#* }" "$work/further"
take_bytes "$remotes" "$work/remotes"
take_bytes "$nested" "$work/nested"
made=$whole/.acp-broker-sync-git.tmp found=$outer/.git
if [ "$below" ]; then
	enter "$below" make || fail other
	find_repository "$below" || found=$whole/$below/.git
	root=$whole/$below outer=$whole/$below inset=
elif [ "$inset" ]; then
	! is_there .git || fail other
	made=$outer/.acp-broker-sync-git.tmp
fi
# Patterns of gitignore(5) that are for ROOT, for the folder that ROOT is in by the way INSET.
raise_patterns() {
	sed -e '/^#/d' -e '/^$/d' -e "s|^\\(!\\{0,1\\}\\)/|\\1/$inset/|" -e t \
		-e "s|^\\(!\\{0,1\\}\\)\\(.*/.\\)|\\1/$inset/\\2|" -e t \
		-e "s|^\\(!\\{0,1\\}\\)|\\1/$inset/**/|"
}
if [ -f "$found/acp-broker/sent" ]; then
	export GIT_DIR="$found"
else
	! has_git "$outer" || { [ "$below" ] && has_stub; } || fail other
	rm -rf "$made"
	export GIT_DIR="$made"
	git init -q --bare --template= "$made" >&2
	mkdir -p "$made/acp-broker" "$made/info"
	printf '%s\n' '[core]' 'repositoryformatversion = 0' 'bare = false' 'filemode = true' \
		'logallrefupdates = true' >"$made/config"
	if [ "$inset" ]; then
		raise_patterns <"$side/info/exclude" >"$made/info/exclude"
	else
		cp "$side/info/exclude" "$made/info/exclude"
	fi
	[ -z "$name" ] || git config user.name "$name"
	[ -z "$email" ] || git config user.email "$email"
fi
# Paths are those of ROOT where a program is told or tells them.
export GIT_WORK_TREE="$outer"
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

# A filter of the user's git whose program is not to be had here stands for itself: on the way to a
# commit a path stays what the index has, and on the way to a file what the file was at the last
# sync. What is in neither fails: git would else take the content as it is.
write_filter() {
	printf '%s\n' "$side" "${below:+$below/}" "${inset:+$inset/}" >"$GIT_DIR/acp-broker/side"
	cat >"$GIT_DIR/acp-broker/filter.new" <<'END'
how=$1 path=$2
export LC_ALL=C
{ IFS= read -r side && IFS= read -r place && IFS= read -r inset; } <"${0%/*}/side"

# The id of what the last sync has seen there.
find_synced() {
	case $path in
	"$inset"*) ;;
	*) return 1 ;;
	esac
	for index in "$side"/known-* "$side"/fresh-*; do
		[ -f "$index" ] || continue
		git --git-dir="$side" rev-parse -q --verify \
			"${index##*-}:$place${path#"$inset"}" && return
	done
	return 1
}

# gitattributes(5), "Long Running Filter Process": of the packets of gitprotocol-common(5).
take_size() {
	size=$(dd bs=1 count=4 2>/dev/null)
	[ "${#size}" = 4 ] || exit 0
	size=$((0x$size - 4))
	[ "$size" -gt 0 ]
}

take_content() {
	dd bs="$size" count=1 iflag=fullblock 2>/dev/null
}

put_text() {
	printf '%04x%s\n' $((${#1} + 5)) "$1"
}

put_file() {
	left=$(($(wc -c <"$1"))) at=0
	while [ "$left" -gt 0 ]; do
		[ "$left" -lt 65516 ] && size=$left || size=65516
		printf '%04x' $((size + 4))
		dd if="$1" bs=65516 skip="$at" count=1 2>/dev/null
		left=$((left - size)) at=$((at + 1))
	done
}

answer() {
	asked= path=
	while take_size; do
		text=$(take_content)
		case $text in
		command=*) asked=${text#*=} ;;
		pathname=*) path=${text#*=} ;;
		esac
	done
	: >"$work/in"
	while take_size; do
		take_content >>"$work/in"
	done
	[ "$asked" = clean ] && asked=$1 || asked=$2
	if sh "$0" "$asked" "$path" <"$work/in" >"$work/out"; then
		put_text status=success
		printf 0000
		put_file "$work/out"
		printf 00000000
	else
		put_text status=error
		printf 0000
	fi
}

# By one program for the way to a commit, by another for the way to a file.
if [ "$how" = serve ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	while take_size; do take_content >/dev/null; done
	put_text git-filter-server
	put_text version=2
	printf 0000
	while take_size; do take_content >/dev/null; done
	put_text capability=clean
	put_text capability=smudge
	printf 0000
	while :; do
		answer "$2" "$3"
	done
fi
if [ "$how" = cat ]; then
	exec cat
fi
if [ "$how" = lfs-clean ]; then
	exec git-lfs clean -- "$path"
fi
if [ "$how" = smudge ]; then
	if synced=$(find_synced); then
		cat >/dev/null
		exec git --git-dir="$side" cat-file blob "$synced"
	fi
	exec cat
fi
# Nothing is downloaded: where the content is not here, the pointer stands for it.
if [ "$how" = lfs ]; then
	pointer=$(cat)
	id=${pointer##*oid sha256:} id=$(printf '%.64s' "$id")
	pair=${id#??} pair=${id%"${id#??}"}/${pair%"${pair#??}"}
	if [ -f "$(git rev-parse --git-common-dir)/lfs/objects/$pair/$id" ]; then
		printf '%s\n' "$pointer" | exec git-lfs smudge -- "$path"
	elif synced=$(find_synced) && command -v sha256sum >/dev/null &&
		[ "$(git --git-dir="$side" cat-file blob "$synced" | sha256sum)" = "$id  -" ]; then
		git --git-dir="$side" cat-file blob "$synced"
	elif [ "$pointer" ]; then
		printf '%s\n' "$pointer"
	fi
	exit
fi
content=$(git hash-object --no-filters --stdin)
# git-add(1) -N puts an empty file there.
staged=$(git rev-parse -q --verify ":0:$path") && {
	[ "$staged" != e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 ] ||
		[ "$staged" = "$(git rev-parse -q --verify "HEAD:$path")" ]
} || {
	printf '%s\n' "acp-broker: $path has a filter whose program or key only the user has." \
		"Leave it out of commits here: git add . ':(exclude)$path'." \
		'The file itself travels to the user, who can commit it.' >&2
	exit 1
}
[ "$content" = "$staged" ] || [ "$content" = "$(find_synced)" ] ||
	printf '%s\n' "acp-broker: $path has changed, but has a filter whose program or key only" \
		'the user has: it shows as unchanged, no commit here changes it.' \
		'The file itself travels to the user, who can commit it.' >&2
exec git cat-file blob "$staged"
END
	mv -f "$GIT_DIR/acp-broker/filter.new" "$GIT_DIR/acp-broker/filter"
}

# A process wins over the two programs, and where git's configuration here has one it cannot be
# taken away: then there has to be one of ours.
set_filter() {
	# shellcheck disable=SC2016
	ours='sh "$(git rev-parse --git-common-dir)/acp-broker/filter"'
	git config -f "$fresh" "filter.$1.clean" "$ours $2 %f"
	git config -f "$fresh" "filter.$1.smudge" "$ours $3 %f"
	[ -z "$(HOME=$own_home XDG_CONFIG_HOME=$own_config GIT_CONFIG_NOSYSTEM='' \
		git config --get "filter.$1.process")" ] ||
		git config -f "$fresh" "filter.$1.process" "$ours serve $2 $3"
	git config -f "$fresh" "filter.$1.required" true
}

# A file of attributes that comes, or came once and does no more.
set_attributes() {
	if [ -s "$1" ]; then
		cp "$1" "$GIT_DIR/acp-broker/$2"
		cp "$1" "$3"
	elif [ -f "$GIT_DIR/acp-broker/$2" ]; then
		rm -f "$GIT_DIR/acp-broker/$2" "$3"
	fi
}

# Before any file of the history can be committed here.
set_filters() {
	fresh=$GIT_DIR/acp-broker/config.new stood=
	: >"$fresh"
	while read -r rule key value; do
		case $rule in
		set) git config -f "$fresh" "$key" "$value" ;;
		clean | whole)
			stood="$stood $key" smudge=smudge
			[ "$rule" = whole ] || smudge=cat
			set_filter "$key" clean "$smudge"
			;;
		lfs)
			if command -v git-lfs >/dev/null; then
				set_filter lfs lfs-clean lfs
			else
				stood="$stood lfs"
				set_filter lfs clean smudge
			fi
			;;
		esac
	done <"$work/rules"
	mkdir -p "$GIT_DIR/info"
	set_attributes "$work/attributes" own "$GIT_DIR/info/attributes"
	set_attributes "$work/further" further "$GIT_DIR/acp-broker/attributes"
	[ "$GIT_DIR" = "$made" ] && place=$outer/.git || place=$GIT_DIR
	[ ! -s "$work/further" ] ||
		git config -f "$fresh" core.attributesFile "$place/acp-broker/attributes"
	[ ! -s "$fresh" ] || write_filter
	if [ ! -s "$fresh" ] && [ ! -f "$GIT_DIR/acp-broker/config" ]; then
		rm -f "$fresh"
		return
	fi
	mv -f "$fresh" "$GIT_DIR/acp-broker/config"
	case $(git config --local --get-all include.path) in
	*acp-broker/config*) ;;
	*) git config --local --add include.path acp-broker/config ;;
	esac
}

# Tells some of the paths whose filter ours stands for, and how many there are.
tell_filtered() {
	[ "$stood" ] || return 0
	git ls-files -z |
		git -c core.attributesFile="$GIT_DIR/acp-broker/attributes" check-attr --cached \
			-z --stdin filter | tr '\012\000' '?\012' |
		sed -n -e 'N;N' -e 's/^\(.*\)\nfilter\n\(.*\)$/\2 \1/' -e '/^unspecified /d' \
			-e '/^unset /d' -e p >"$work/filtered"
	while read -r key path; do
		case "$stood " in
		*" $key "*) printf '%s\n' "$path" ;;
		esac
	done <"$work/filtered" >"$work/stood"
	count=$(wc -l <"$work/stood" | tr -d ' ')
	head -n 10 "$work/stood" | while IFS= read -r path; do
		say filtered "$count" "$path"
	done
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
set_filters
[ "$shallow" = 0 ] || list_missing
# The pack is written in a place of its own, and comes to the others when it is whole: of one that
# could not be written to the end, or was cut off, nothing stays among the agent's objects.
take_pack() {
	filling=$GIT_DIR/acp-broker/incoming
	rm -rf "$filling"
	mkdir -p "$filling/pack" "$GIT_DIR/objects/pack"
	GIT_OBJECT_DIRECTORY=$filling GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects \
		git index-pack --stdin -v ${promisor:+--promisor} >/dev/null
	for part in pack rev promisor idx; do # git knows a pack by its index
		for file in "$filling"/pack/pack-*."$part"; do
			[ ! -e "$file" ] || mv -f "$file" "$GIT_DIR/objects/pack/"
		done
	done
	rm -rf "$filling"
	filling=
}
# What a partial clone has not got is not here either: git asks the remote for it.
set_promisor() {
	[ "$promisor" ] || return 0
	[ "$(git config --local --get extensions.partialClone)" != "$promisor" ] || return 0
	git config --local core.repositoryFormatVersion 1 &&
		git config --local extensions.partialClone "$promisor" &&
		git config --local "remote.$promisor.promisor" true || leave_locked
}
set_promisor
if [ "$pack" = pack ]; then
	take_pack
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
	git for-each-ref --format='%(objectname) %(refname)' "$@"
}

# A new repository gets all of them in one file (gitrepository-layout(5)): thousands of files take
# seconds.
[ "$GIT_DIR" != "$made" ] || cp "$work/refs" "$made/packed-refs"

# Those that were sent and are no more go first: "topic" is in the way of "topic/new".
list_gone() {
	names=" $(cut -d ' ' -f 2 "$work/tracking" | tr '\n' ' ')"
	while read -r at ref; do
		case $names in
		*" $ref "*) ;;
		*) ! is_sent "$at" || printf 'delete %s %s\n' "$ref" "$at" ;;
		esac
	done <"$work/differ"
}

# One that cannot be set, for one of the agent's is in its way, is in the way of no other.
set_tracking() {
	sed -n '/ refs\/remotes\//p' "$work/refs" >"$work/tracking"
	sort "$work/tracking" >"$work/wanted"
	list_refs refs/remotes | sort >"$work/there"
	comm -13 "$work/wanted" "$work/there" >"$work/differ"
	list_gone | git update-ref --stdin || print=
	sed 's/^\([0-9a-f]*\) \(.*\)$/update \2 \1/' "$work/tracking" | git update-ref --stdin &&
		return
	print=
	comm -23 "$work/wanted" "$work/there" >"$work/differ"
	while read -r at ref; do
		git update-ref "$ref" "$at" </dev/null || :
	done <"$work/differ"
}
set_tracking

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
	git --work-tree="$work/empty" sparse-checkout reapply >/dev/null || {
		printf '%s\n' 'the git here knows no sparse checkout' >&2
		[ -z "$inset" ] || exit 1 # the rest would look deleted
	}
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
