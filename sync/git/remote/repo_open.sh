# SPDX-License-Identifier: MIT
# Tells what repository the root is: "none", "ours" with the commits (and tags) we once sent, or
# "other" which is the agent's alone. Then the same of those below it. Arguments: INNER, a line for
# the path of each; or none.
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

# Where the stub of sync/git/remote/nested.sh is, there is none either.
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
