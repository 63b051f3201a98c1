# SPDX-License-Identifier: MIT
# Makes ROOT/.git, or the repository above ROOT, look like the user's repository to the people and
# agents who work there: with the user's history, HEAD, other refs, name, filters and remotes.
# Arguments:
#
#     KIND            "branch" or "detached"
#     BRANCH          the branch that HEAD names; may be empty
#     ID              the commit of HEAD; may be empty for an unborn branch
#     NAME, EMAIL     the user's, for the agent's commits; may be empty
#     REFS, SHALLOW   sizes, see below
#     PACK            "pack" if stdin has a pack
#     PRINT           recorded at the end and reported next time; if it is still the same, there is
#                     nothing to do
#     SPARSE          empty, or whether a sparse checkout uses cones, and a size
#     FILTERS         empty, or three sizes
#     REMOTES, NESTED sizes
#     PROMISOR        the remote of a partial clone, or empty
#     BELOW           the folder of a repository below ROOT, or empty; with it, the script does
#                     everything in that folder, and calls it ROOT from then on
#
# Some texts would not fit into arguments, so they come on stdin, one after the other. The arguments
# say how many bytes each has:
#
#     REFS            lines "ID NAME"
#     SHALLOW         lines of ids
#     SPARSE          the patterns
#     FILTERS         rules and two attribute files (sync/git/filters.h), which may be empty
#     REMOTES         lines of names and URLs (sync/git/remotes.h)
#     NESTED          lines of paths (sync/nested.h)
#     (the rest)      a pack of the missing objects, if PACK is "pack"
#
# The script moves HEAD only if HEAD is still as we left it. A new repository appears complete. An
# update of an existing one may be interrupted at any point; the next run continues it.
kind=$1 branch=$2 id=$3 name=$4 email=$5 refs=$6 shallow=$7 pack=$8 print=$9 sparse=${10}
filters=${11} remotes=${12} nested=${13} promisor=${14} below=${15} whole=$root
cd "$root"
make_side
work=$side/work.$$
mkdir -p "$work"
# Copies exactly the next $1 bytes of stdin to $2. head(1) may read more.
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
# Not empty if the user's sparse checkout leaves out files of the workspace. Files that are merely
# outside of the workspace do not count.
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
# Translates gitignore(5) patterns for ROOT into patterns for the folder from which INSET leads to
# ROOT.
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
# From here on, git reads and prints paths relative to ROOT.
export GIT_WORK_TREE="$outer"
rm -f "$GIT_DIR/acp-broker/print"
git() {
	command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"
}
# With the packs of the history in SIDE, the broker need not send their objects again for the files.
# SIDE gets its own links to the packs, because the agent may change ROOT/.git.
share_packs() {
	for pack in "$made"/objects/pack/pack-*.pack; do
		index=${pack%.pack}.idx
		ln "$pack" "$index" "$side/objects/pack/" 2>/dev/null || return 1
	done
}

# Writes one of our notes. The note is complete, wherever the script is interrupted.
keep() {
	printf '%s\n' "$2" >"$GIT_DIR/acp-broker/$1.new" &&
		mv -f "$GIT_DIR/acp-broker/$1.new" "$GIT_DIR/acp-broker/$1"
}

# A filter of the user's git may need a program that is missing here. A stand-in replaces the
# filter. For a commit, it prints the content that the index has; if there is none, it fails,
# because otherwise git would use the content unfiltered. For a file, it prints the content of the
# last sync; if there is none, the content stays as it is.
write_filter() {
	printf '%s\n' "$side" "${below:+$below/}" "${inset:+$inset/}" >"$GIT_DIR/acp-broker/side"
	cat >"$GIT_DIR/acp-broker/filter.new" <<'END'
how=$1 path=$2
export LC_ALL=C
{ IFS= read -r side && IFS= read -r place && IFS= read -r inset; } <"${0%/*}/side"

# The id at the last sync.
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

# gitattributes(5), "Long Running Filter Process", with the packets of gitprotocol-common(5).
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

# One program for the way to a commit, another for the way to a file.
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
# Downloads nothing: if the content is not here, the pointer file takes its place.
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
# git-add(1) -N adds an empty file there.
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

# git prefers the process of a filter to its two programs, and we cannot remove a process from the
# configuration of git here. So a stand-in process must replace it.
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

# Writes a file of attributes, or removes one that was sent before and is not needed any more.
set_attributes() {
	if [ -s "$1" ]; then
		cp "$1" "$GIT_DIR/acp-broker/$2"
		cp "$1" "$3"
	elif [ -f "$GIT_DIR/acp-broker/$2" ]; then
		rm -f "$GIT_DIR/acp-broker/$2" "$3"
	fi
}

# This must come before any file of the history can be committed here.
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

# Reports some of the paths whose filter has a stand-in, and the number of all such paths.
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

# Finds the shallow commits that are missing here. If a commit exists here, either its parents
# exist, too, or it is already in git's list of shallow commits. The agent may have fetched more or
# less history than the user has. So the script adds to the list only those missing commits that are
# sent now; git would fail for one that was not sent.
list_missing() {
	git cat-file --batch-check <"$work/shallow" | sed -n 's/ missing$//p' >"$work/missing"
	[ ! -f "$GIT_DIR/acp-broker/missing" ] ||
		cat "$GIT_DIR/acp-broker/missing" >>"$work/missing"
	[ ! -s "$work/missing" ] || keep missing "$(cat "$work/missing")"
}

# Uses git's own lock for the list, because git rewrites the whole list after a fetch. If an
# interrupted run of ours left the lock, the lock contains a mark.
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

# Ends this run, because another git is running here. The next run continues.
leave_locked() {
	[ "$GIT_DIR" != "$made" ] || exit 1
	say kept locked
	rm -rf "$work" || :
	exit 0
}
set_filters
[ "$shallow" = 0 ] || list_missing
# git writes the pack in a separate folder. The script moves it to the other packs when it is
# complete, so that an incomplete pack never stays among the agent's objects.
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
# Objects that the user's partial clone lacks are missing here, too: git requests them from the
# remote.
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
	# No ref may lead to a commit that lacks its parents and is not in the list.
	lock_shallow || leave_locked
	add_shallow
fi
# The script records these commits before a branch leads to one of them: otherwise it would count
# them as the agent's. The commits that are needed now come first, because repo_open.sh reports only
# a limited number.
{
	[ -z "$id" ] || printf '%s\n' "$id"
	cut -d ' ' -f 1 "$work/refs"
} | sort -u >"$work/sent"
: >"$work/before"
[ ! -f "$GIT_DIR/acp-broker/sent" ] || sort -u "$GIT_DIR/acp-broker/sent" >"$work/before"
comm -13 "$work/sent" "$work/before" >"$work/older"
sent=$(cat "$work/sent" "$work/older" | head -n 20000)
keep sent "$sent"

# Whether a commit is the user's: then removing a ref to it loses nothing.
is_sent() {
	case $sent in
	*"$1"*) ;;
	*) return 1 ;;
	esac
}

list_refs() {
	git for-each-ref --format='%(objectname) %(refname)' "$@"
}

# A new repository gets all refs in one file (gitrepository-layout(5)), because thousands of files
# take seconds.
[ "$GIT_DIR" != "$made" ] || cp "$work/refs" "$made/packed-refs"

# Prints commands that delete refs which were sent and are gone from the user's repository. They go
# first: "topic" would be in the way of "topic/new".
list_gone() {
	names=" $(cut -d ' ' -f 2 "$work/tracking" | tr '\n' ' ')"
	while read -r at ref; do
		case $names in
		*" $ref "*) ;;
		*) ! is_sent "$at" || printf 'delete %s %s\n' "$ref" "$at" ;;
		esac
	done <"$work/differ"
}

# A ref that cannot be set, because one of the agent's is in its way, does not stop the others.
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
# Moves the index from one commit to another; either may be missing. The files in ROOT stay as they
# are.
move_index() {
	if [ -z "$2" ]; then
		rm -f "$GIT_DIR/index"
	else
		git read-tree -i -m "${1:-$nothing}" "$2" 2>/dev/null || git read-tree --reset "$2"
	fi
}

# Files that the workspace leaves out on purpose do not count as deleted here either. While git
# looks for them, the work tree is an empty folder, so that git writes nothing in ROOT. No path may
# turn from left out to present meanwhile, because git would then write it.
set_sparse() {
	[ "$sparse" ] || [ -f "$GIT_DIR/acp-broker/sparse" ] || return 0
	[ ! -e "$GIT_DIR/index.lock" ] || {
		is_locked=yes
		return 0
	}
	# First, git forgets which files are left out. Otherwise it would regard those of them that
	# exist as present, and not update the index.
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
		[ -z "$inset" ] || exit 1 # the rest of the repository would look deleted
	}
}

# Whether we can set the branch to the commit without losing a commit of the agent's, on this branch
# or on a branch whose name is in the way. Lists the branches to delete.
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

# Moves the index before HEAD: a commit that the agent makes in between then reverts nothing of the
# user's. Fails if another git is running here and has locked one of them.
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

# Takes up a move that an interrupted run has begun, and moves the index to its target. The index
# may already match the new commit, and HEAD may be there, too, or have lost its branch.
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
