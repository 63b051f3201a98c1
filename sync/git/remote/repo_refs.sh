# SPDX-License-Identifier: MIT
# Comes after repo_update.sh: handles the other branches and the tags in $work/refs, and the remotes
# in $work/remotes, and ends the update.
was_put() {
	case $put in
	*"$1"*) [ "$1" ] ;;
	*) return 1 ;;
	esac
}

# Decides about one branch or tag. $wanted is its id in the user's repository, $there its id here,
# $put the ids that we set here; each may be empty. The agent's changes stay, and so does a branch
# that is checked out here. A branch that HEAD has left may be at any commit that the user had; this
# does not count as a change by the agent.
decide_ref() {
	[ "$wanted" != "$there" ] && [ "$ref" != "refs/heads/$branch" ] || return 0
	case $checked in
	*"ref: $ref
"*) return 0 ;;
	esac
	if [ -z "$wanted" ]; then
		! was_put "$there" || printf 'delete %s %s\n' "$ref" "$there" >&3
	elif [ -z "$there" ]; then
		printf 'create %s %s\n' "$ref" "$wanted"
	elif was_put "$there" || { [ "${ref#refs/tags/}" = "$ref" ] && is_sent "$there"; }; then
		printf 'update %s %s %s\n' "$ref" "$wanted" "$there"
	fi
}

decide_refs() {
	ref=
	while read -r name what at; do
		if [ "$name" != "$ref" ]; then
			decide_ref
			ref=$name wanted= there= put=
		fi
		case $what in
		wanted) wanted=$at ;;
		there) there=$at ;;
		put) put="$put $at" ;;
		esac
	done
	decide_ref
}

# A ref that cannot be changed, because another one is in its way, does not stop the others.
change_refs() {
	[ -s "$1" ] || return 0
	git update-ref --stdin <"$1" && return
	print= is_put=
	while IFS= read -r line; do
		printf '%s\n' "$line" | git update-ref --stdin || :
	done <"$1"
}

# Sets the user's other branches and the tags. The script records each change before it makes it, so
# that it may be interrupted.
set_named() {
	record=$GIT_DIR/acp-broker/put is_put=yes
	sed -n '/ refs\/remotes\//!p' "$work/refs" >"$work/named"
	[ -s "$work/named" ] || [ -f "$record" ] || return 0
	[ -f "$record" ] || : >"$record"
	checked=$(cat "$GIT_DIR/HEAD" "$GIT_DIR"/worktrees/*/HEAD 2>/dev/null || :
		echo .)
	{
		sed 's/ / wanted /' "$work/named"
		list_refs refs/heads refs/tags | sed 's/ / there /'
		sed 's/ / put /' "$record"
	} | sed 's/^\([^ ]*\) \([^ ]*\) \(.*\)$/\3 \2 \1/' | sort >"$work/sides"
	keep put "$(sort -u "$work/named" "$record")"
	ref= wanted= there= put=
	decide_refs <"$work/sides" >"$work/set" 3>"$work/gone"
	change_refs "$work/gone"
	change_refs "$work/set"
	[ -z "$is_put" ] || keep put "$(cat "$work/named")
$id refs/heads/$branch"
}
set_named

lines_of() {
	while IFS= read -r line; do
		case $line in
		"remote.$1.url "* | "remote.$1.pushurl "*) printf '%s\n' "$line" ;;
		esac
	done <"$2"
}

# If the agent has made a remote of this name, or changed its URL, the remote is the agent's own and
# stays.
set_remote() {
	here=$(lines_of "$1" "$work/configured")
	there=$(lines_of "$1" "$work/remotes")
	[ "$here" != "$there" ] && [ "$here" = "$(lines_of "$1" "$work/came")" ] || return 0
	for key in url pushurl; do
		case $here in
		*"remote.$1.$key "*) git config --local --unset-all "remote.$1.$key" || return 1 ;;
		esac
	done
	if [ -z "$there" ]; then
		git config --local --remove-section "remote.$1"
		return
	fi
	lines_of "$1" "$work/remotes" | while IFS= read -r line; do
		key=${line#"remote.$1."} key=${key%% *}
		git config --local --add "remote.$1.$key" "${line#"remote.$1.$key "}" || return 1
	done || return 1
	[ -n "$here" ] || git config --local "remote.$1.fetch" "+refs/heads/*:refs/remotes/$1/*"
}

# Another git may be running here and have locked the configuration; then the next run tries again.
set_remotes() {
	: >"$work/came"
	[ ! -f "$GIT_DIR/acp-broker/remotes" ] || cat "$GIT_DIR/acp-broker/remotes" >"$work/came"
	[ "$(cat "$work/came")" != "$(cat "$work/remotes")" ] || return 0
	is_done=yes
	git config --local --get-regexp '^remote\..*\.(push)?url$' >"$work/configured" || :
	cat "$work/came" "$work/remotes" | sed 's/^remote\.\([^ ]*\)\.[a-z]*url .*$/\1/' |
		sed '/./!d' | sort -u >"$work/names"
	while read -r name; do
		set_remote "$name" </dev/null || print= is_done=
	done <"$work/names"
	[ -z "$is_done" ] || keep remotes "$(cat "$work/remotes")"
}
set_remotes
[ "$is_locked" ] || set_nested
tell_filtered
keep print "$print"
# Adds BELOW to SIDE/inner, which a delivery reads (sync/git/remote/nested.sh), and removes the
# stub.
put_below() {
	{
		printf '%s\n' "$below"
		[ ! -f "$side/inner" ] || cat "$side/inner"
	} | sort -u >"$work/inner"
	mv -f "$work/inner" "$side/inner"
	! has_stub || rm -f .git
}

if [ "$GIT_DIR" = "$made" ]; then
	[ -z "$below" ] || put_below
	mv -T "$made" "$outer/.git"
fi
rm -rf "$work" || :
