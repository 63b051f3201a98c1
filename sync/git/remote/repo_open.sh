# SPDX-License-Identifier: MIT
# Tells what repository the root is: "none", "ours" with the commits (and tags) we once sent, or
# "other" which is the agent's alone.
if [ ! -e "$root/.git" ] && [ ! -L "$root/.git" ]; then
	say repository none
elif [ ! -f "$root/.git/acp-broker/sent" ]; then
	say repository other
else
	say repository ours
	export GIT_DIR="$root/.git"
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
fi
