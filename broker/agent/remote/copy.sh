# SPDX-License-Identifier: MIT
# Copies a file to TARGET. If TARGET exists and the last copy to it had the same content, the script
# leaves TARGET alone, so that users and agents keep their changes to it. Arguments: TARGET SIZE
# TOKEN KEY; stdin has the content. KEY names TARGET in our own notes.
target=$1 wanted=$2 token=$3 marker=$state/copied/$4
umask 077
case $target in
*/*) folder=${target%/*} ;;
*) folder=. ;;
esac
case $folder in
/* | '') ;;
*) folder=./$folder ;;
esac
name=${target##*/}
mkdir -p "$folder/" || fail "its folder cannot be made"
temporary=$folder/.acp-broker-$token.tmp
trap 'rm -f "$temporary"' EXIT
trap 'exit 1' HUP INT TERM
(set -C && cat >"$temporary") || fail "it cannot be written"
[ "$(wc -c <"$temporary")" -eq "$wanted" ] || fail "its content was cut off"
sum=$(sha256sum <"$temporary") || fail "there is no sha256sum"
if [ -f "$folder/$name" ] && [ "$(cat "$marker" 2>/dev/null)" = "$sum" ]; then
	say kept '' done ''
	exit 0
fi
[ ! -d "$folder/$name" ] || fail "there is a folder of that name"
sync "$temporary" && mv -f "$temporary" "$folder/$name" || fail "it cannot be put in its place"
note "$marker" "$sum" || fail "$marker cannot be written"
say copied '' done ''
