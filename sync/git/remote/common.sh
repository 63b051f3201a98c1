# SPDX-License-Identifier: MIT
# Comes before every script that runs in the sandbox. Arguments: SIDE ROOT INSET ...
#
# SIDE is our own repository beside the runtime root; ROOT/.git is the agent's. If ROOT is a part of
# the agent's repository, INSET is the path from the top of that repository ($outer) to ROOT, and
# .git is at the top. Results go to stdout as words that end in NUL (sync/git/lines.h); the last two
# are "end" and the status. stderr has messages for people and progress.
set -eu
trap 'status=$?; ! is_last || close_folders; [ "$status" = 0 ] || leave
	printf "end\0%s\0" "$status"' EXIT
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES \
	GIT_COMMON_DIR GIT_NAMESPACE GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_PREFIX \
	GIT_CEILING_DIRECTORIES GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS \
	GIT_ICASE_PATHSPECS GIT_SHALLOW_FILE GIT_GRAFT_FILE GIT_REPLACE_REF_BASE GIT_EXTERNAL_DIFF \
	GIT_TRACE GIT_TEMPLATE_DIR GIT_ATTR_SOURCE CDPATH ENV
side=$1 root=$2 inset=$3
shift 3
outer=${root%"${inset:+/$inset}"}
own_home=${HOME:-} own_config=${XDG_CONFIG_HOME:-$own_home/.config}
# With these variables, git uses no configuration of the sandbox's user, no replacements and no
# prompts, and fetches nothing for a partial clone. The configuration of SIDE (make_side), and
# repo_update.sh, switch off hooks.
export LC_ALL=C HOME="$side" XDG_CONFIG_HOME="$side" GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 \
	GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none \
	GIT_TERMINAL_PROMPT=0 GIT_DEFAULT_HASH=sha1 GIT_DEFAULT_REF_FORMAT=files \
	GIT_OPTIONAL_LOCKS=1

say() {
	printf '%s\0' "$@"
}

fail() {
	say fail "$1"
	exit 0
}

# Removes the kept indexes. If one became unreadable, for example by a power failure, it would make
# every run fail.
forget_indexes() {
	[ -z "${side:-}" ] || rm -f "$side"/known-* "$side"/fresh-*
}

# Whether no later script has started. A script that has lost its broker may still be running when
# the next one starts. The next one removes the folder $begun of the old one, which must not clean
# up anything from then on.
is_last() {
	[ -z "${begun:-}" ] || [ -d "$begun" ]
}

# Handles a failed script. If the disk was full, reports this and the folder. Removes incomplete
# files, because they would keep the disk full and make every later sync fail.
leave() {
	is_last || return 0
	full= probed=
	for place in ${filling:+"$filling"} ${side:+"$side"} ${root:+"$root"}; do
		[ -z "$full" ] && [ -d "$place" ] && device=$(stat -c %d "$place") &&
			[ "$device" != "$probed" ] && probed=$device && ! has_room "$place" ||
			continue
		full=$place
	done
	forget_indexes
	if [ "$full" ] && [ "${side:-}" ]; then
		remove_begun "$side"
	else
		[ -z "${begun:-}" ] || rm -rf "$begun" "$side/index.$$" "$side/index.$$.lock"
	fi
	[ -z "${filling:-}" ] || rm -rf "$filling"
	[ -z "${made:-}" ] || [ "$made" != "${GIT_DIR:-}" ] || rm -rf "$made"
	[ -z "$full" ] || {
		say fail "full $full"
		status=0
	}
}

# Writes to a file in the folder $1. The file has no name meanwhile. A script that is killed before
# it removes the name leaves an empty file, which a later script removes (remove_begun,
# remove_remains). The caller asks for the agent's folder last, and only if it is on a file system
# of its own.
has_room() {
	probe=$1/.acp-broker-sync-room.$$.tmp
	{ rm -f "$probe" && head -c 262144 /dev/zero >&5; } 5>"$probe" 2>/dev/null
}

# Removes objects and packs that git could not write completely, and the temporary files of earlier
# scripts. Only for a repository in which nobody else writes.
remove_begun() {
	remove_all "$1"/objects/pack/tmp_* "$1"/objects/tmp_*
	remove_all "$1"/objects/[0-9a-f][0-9a-f]/tmp_obj_*
	remove_all "$1"/work.* "$1"/index.* "$1"/fast_import_crash_* "$1"/.acp-broker-sync-room.*
}

# Makes SIDE if it is missing or incomplete.
make_side() {
	[ -f "$side/made" ] && [ -d "$side/objects" ] && [ -f "$side/HEAD" ] && return
	rm -rf "$side"
	(umask 077 && mkdir -p "$side" && git init -q --bare --template= "$side" >&2)
	mkdir -p "$side/info" "$side/big"
	printf '* -text -filter -ident -eol -working-tree-encoding\n' >"$side/info/attributes"
	: >"$side/info/exclude"
	printf '%s\n' '[core]' 'repositoryformatversion = 0' 'bare = false' 'filemode = true' \
		'symlinks = true' 'ignorecase = false' 'precomposeunicode = false' \
		'protectHFS = true' 'protectNTFS = true' 'logallrefupdates = false' \
		'autocrlf = false' 'safecrlf = false' 'fsmonitor = false' \
		'hooksPath = /dev/null' 'attributesFile = /dev/null' 'excludesFile = /dev/null' \
		'compression = 0' 'bigFileThreshold = 16m' '[gc]' 'auto = 0' '[maintenance]' \
		'auto = false' '[pack]' 'window = 0' '[fastimport]' 'unpackLimit = 1000' \
		>"$side/config"
	: >"$side/made"
}

# Makes the folders of paths writable until the script ends. The paths come on stdin, each ended by
# NUL. Prints the paths for which this is impossible, in the same form. A folder behind a link is
# not changed.
open_folders() {
	xargs -0 sh -c 'side=$0 top=$1
		shift
		open() {
			[ ! -w "$top$1" ] || return 0
			printf "%s\0" "$1" >>"$side/opened"
			cd -P "$top$1" && [ "$PWD" = "$top$1" ] && chmod u+w .
			cd "$top"
			[ -w "$top$1" ]
		} 2>/dev/null
		seen=none
		for path do
			folder=/$path
			while folder=${folder%/*} && [ "$folder" ] && [ ! -d "$top$folder" ]; do
				:
			done
			if [ "$folder" != "$seen" ]; then
				seen=$folder is_open=yes
				open "$folder" || is_open=
				while [ "$folder" ]; do # those that may become empty
					folder=${folder%/*}
					open "$folder" || :
				done
			fi
			[ "$is_open" ] || printf "%s\0" "$path"
		done' "$side" "$(pwd -P)"
}

# Makes these folders read-only again. The list of them survives a script that is killed; then the
# next script does this.
close_folders() {
	[ -n "${side:-}" ] && [ -s "$side/opened" ] && [ -d "$root" ] || return 0
	xargs -0 sh -c 'top=$0
		for folder do
			cd -P "$top$folder" && [ "$PWD" = "$top$folder" ] && chmod u-w .
		done 2>/dev/null' "$(cd "$root" && pwd -P)" <"$side/opened" || :
	rm -f "$side/opened"
}

# From here on, git works on the root with SIDE and with an index that belongs only to this run, so
# that an earlier run that was killed, or has not quite ended, does no harm.
use_side() {
	make_side
	cd "$root"
	export GIT_DIR="$side" GIT_WORK_TREE="$root"
	close_folders
	remove_begun "$side"
	# A killed git leaves the lock of the reference that it was about to set.
	remove_all "$side/info/exclude.new" "$side"/refs/acp-broker/*.lock
	work=$side/work.$$
	mkdir "$work" 2>/dev/null || {
		work=$work.again
		mkdir "$work"
	}
	begun=$work
	export GIT_INDEX_FILE="$side/index.$$" work side root
}

# Removes the files that match a pattern; starts no program if there are none. An earlier script
# that has not quite ended may add another file meanwhile; the next run removes that one.
remove_all() {
	for path do
		if [ -e "$path" ] || [ -L "$path" ]; then
			rm -rf "$@" || :
			return
		fi
	done
}

# Removes what a killed sync left in the root; only one sync works there at a time. A file with
# another temporary name may belong to a write in progress, so this removes it only if nobody has
# written to it for a day.
remove_remains() {
	remove_all "$root"/.acp-broker-sync-*.tmp
	for path in "$root"/.acp-broker-*.tmp; do
		if [ -e "$path" ] || [ -L "$path" ]; then
			find "$root" -maxdepth 1 -name '.acp-broker-*.tmp' -mtime +0 \
				-exec rm -rf {} + || :
		fi
		return
	done
}

# git reads a file again if the file is as young as the index, also when git writes the index. If
# the file shrinks meanwhile, SIGBUS kills git, and git leaves its lock. Then this function runs the
# command again, up to five times in all. The command must not read stdin.
insist() {
	for attempt in 1 2 3 4 5; do
		ended=0
		"$@" || ended=$?
		[ "$ended" = 135 ] || break
		rm -f "$GIT_INDEX_FILE.lock"
	done
	return "$ended"
}

# Removes the paths in a file from the index; each path ends in NUL.
forget_paths() {
	git update-index -z --force-remove --stdin <"$1"
}

need_tree() {
	git cat-file -e "$1^{tree}" 2>/dev/null || fail missing
}

# Definitions for the shells that xargs(1) starts; each shell reads the file that is its $0.
write_functions() {
	cat >"$work/functions" <<'END'
# Whether a path, which starts with "./", leads through a link.
leads_through_link() {
	way=$1
	while way=${way%/*} && [ "$way" != . ]; do
		[ ! -L "$way" ] || return 0
	done
	return 1
}

is_plain_file() {
	[ -f "$1" ] && [ ! -L "$1" ] && ! leads_through_link "$1"
}

# Whether there is certainly no file at a path. Below a folder that we may not read, this is
# unknown.
is_no_file() {
	! leads_through_link "$1" || return 0
	is=$(stat -c %F "$1" 2>&1) || case $is in
	*": No such file or directory" | *": Not a directory") return 0 ;;
	*) return 1 ;;
	esac
	[ ! -f "$1" ] || [ -L "$1" ]
}

# Prints the id of a file's content. For a large file this takes time, during which newlines on
# stderr show progress. They only come while it uses the processor, so that a process that hangs is
# silent. Arguments: the path and the size.
hash_content() {
	if [ "$2" -le 67108864 ]; then
		git hash-object --no-filters "$1"
		return
	fi
	git hash-object --no-filters "$1" &
	hashing=$!
	used=
	while sleep 5 && now=$(cut -d ' ' -f 14,15 "/proc/$hashing/stat" 2>/dev/null); do
		[ "$now" = "$used" ] || echo
		used=$now
	done >&2 &
	alive=$!
	failed=
	wait "$hashing" || failed=yes
	kill "$alive"
	[ -z "$failed" ]
}

# Sets $id, $size and $mode for a big file. For an unchanged file they are cached under a name made
# of its path, times and size.
measure() {
	facts=$(stat -c '%s %a %Y %Z %d:%i:%y:%z' "$1")
	size=${facts%% *} rest=${facts#* }
	case ${rest%% *} in
	*[1357]??) mode=100755 ;;
	*) mode=100644 ;;
	esac
	rest=${rest#* } modified=${rest%% *}
	rest=${rest#* } changed=${rest%% *}
	key=$(printf '%s %s' "$facts" "$1" | git hash-object --stdin)
	# After a power failure, a cached file may contain anything.
	known=$side/big/$key
	if [ -s "$known" ] && read -r id <"$known" && [ "${#id}" -eq "${#key}" ]; then
		return
	fi
	id=$(hash_content "$1" "$size") || return 1
	young=$(($(date +%s) - 3))
	if [ "$modified" -lt "$young" ] && [ "$changed" -lt "$young" ]; then
		printf '%s\n' "$id" >"$work/id"
		mv -f "$work/id" "$side/big/$key"
	fi
}

# Moves an ignored file, which is not a member, out of the way by giving it another name.
move_aside() {
	git check-ignore -q "$1" && rename_aside "$1"
}

# A name that is too long is shortened, but stays unique.
rename_aside() {
	aside=.$(date +%Y%m%dT%H%M%S)-$$.acp-conflict
	mv "$1" "$1$aside" 2>/dev/null && return
	print=$(printf '%s' "$1" | git hash-object --stdin)
	name=${1##*/}
	mv "$1" "${1%/*}/$(printf '%.100s' "$name").$print$aside"
}

is_folder() {
	[ -d "$1" ] && [ ! -L "$1" ]
}

exists() {
	[ -e "$1" ] || [ -L "$1" ]
}
END
	. "$work/functions"
}

# Makes the index of the tree $1, with what earlier runs know about the files. The index file must
# keep its time: by comparison with it, git detects files that may have changed unnoticed. SIDE
# keeps an index under the name "known-TREE" if the scripts can use it unchanged, otherwise as
# "fresh-TREE".
load_index() {
	take_index "$side/known-$1" || make_index "$1"
}

make_index() {
	for index in "$side"/known-* "$side"/fresh-*; do
		! take_index "$index" || break
	done
	git read-tree --reset "$1" 2>/dev/null || {
		rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"
		git read-tree "$1"
	}
}

take_index() {
	[ -f "$1" ] || return 1
	ln "$1" "$GIT_INDEX_FILE" 2>/dev/null || cp -p "$1" "$GIT_INDEX_FILE"
}

# Keeps the index of the tree $2; $1 is "known" or "fresh". git writes a "fresh" index once more
# before the scripts use it. It then reads every file again that is not older than the index.
keep_index() {
	rm -f "$side"/known-* "$side"/fresh-*
	mv -f "$GIT_INDEX_FILE" "$side/$1-$2"
}
