# SPDX-License-Identifier: MIT
# Reports the kind of repository at the root: "none"; "ours" with the commits (and tags) that we
# once sent; or "other" if it is entirely the agent's. Then reports the same about the repositories
# below the root. Argument: INNER, which has their paths, one per line, and may be empty.
tell_repository() {
	if [ ! -f "$1/acp-broker/sent" ]; then
		say repository other
		return
	fi
	say repository ours
	export GIT_DIR="$1"
	head -n 20000 "$GIT_DIR/acp-broker/sent" |
		git cat-file --batch-check='%(objectname) %(objecttype)' |
		while read -r id type; do
			case $type in
			commit | tag | tree | blob) say have "$id" ;;
			esac
		done
	print=
	[ ! -f "$GIT_DIR/acp-broker/print" ] || read -r print <"$GIT_DIR/acp-broker/print" || :
	[ -z "$print" ] || say print "$print"
}

# A stub (sync/git/remote/nested.sh) counts as no repository.
tell_inner() (
	if find_repository "$1"; then
		tell_repository "$found"
	elif enter "$1" '' && { has_stub || ! is_there .git; }; then
		say repository none
	elif [ -e "$root/$1" ] || [ -L "$root/$1" ]; then
		say repository other
	else
		say repository none
	fi
)

if [ "$inset" ] && has_git "$root"; then
	say repository other
elif has_git "$outer"; then
	tell_repository "$outer/.git"
else
	say repository none
fi
printf '%s' "${1:-}" | while IFS= read -r path; do
	say within "$path"
	tell_inner "$path" </dev/null
done
