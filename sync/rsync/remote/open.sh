# SPDX-License-Identifier: MIT
# Arguments: ROOT HOME NAME. Prints words that end in NUL: the output of `rsync --version` ("" if
# there is no rsync), and a folder of ours from which files can be renamed into ROOT.
set -eu
root=$1 home=$2 name=$3
version=
command -v rsync >/dev/null && version=$(rsync --version 2>/dev/null) || :
printf '%s\0' "$version"

can_rename() {
	probe=$root/.acp-broker-$name-probe.tmp
	rm -f "$probe" && : >"$1/probe" && ln "$1/probe" "$probe" && rm -f "$probe" "$1/probe"
}

# Whether a folder of ours has files that an interrupted delivery replaced, or could not put back.
# They may exist only here.
holds() {
	for kept in "$1/backup" "$1/again" "$1"/kept-*; do
		[ -z "$(ls -A "$kept" 2>/dev/null)" ] || return 0
	done
	return 1
}

inside=$root/.acp-broker-$name.tmp
# The first place is beside the root, where the folder is removed together with the root. Another
# place is used if we cannot write there, or cannot rename a file from there into ROOT.
set -- "${root%/*}/.acp-broker/rsync/$name" "${home%/}/.acp-broker/rsync/$name" "$inside"
for side; do
	if holds "$side"; then
		(umask 077 && mkdir -p "$side/tmp" "$side/backup" "$side/again") 2>/dev/null || :
		printf '%s\0' "$side"
		exit 0
	fi
done
for side; do
	(umask 077 && mkdir -p "$side/tmp" "$side/backup" "$side/again") 2>/dev/null || continue
	if [ "$side" = "$inside" ] || can_rename "$side" 2>/dev/null; then
		printf '%s\0' "$side"
		exit 0
	fi
	rm -rf "$side/tmp" "$side/probe"
	rmdir "$side/backup" "$side/again" "$side" 2>/dev/null || :
done
