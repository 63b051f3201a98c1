# SPDX-License-Identifier: MIT
# Takes the content of a big file from stdin. Argument: its id less the last digit.
use_side
cat >"$root/.acp-broker-sync-$1.tmp"
id=$(git hash-object --no-filters "$root/.acp-broker-sync-$1.tmp")
if [ "${id%?}" != "$1" ]; then
	rm -f "$root/.acp-broker-sync-$1.tmp"
	fail content
fi
rm -rf "$work" || :
