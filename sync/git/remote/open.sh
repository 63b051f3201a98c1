# SPDX-License-Identifier: MIT
# Checks that the sandbox has the necessary programs, and makes SIDE. stdin: ignore rules besides
# those in the .gitignore files, for info/exclude.
for tool in git find xargs stat comm cut sort wc head tr sed; do
	command -v "$tool" >/dev/null || fail "tool $tool"
done
make_side
exclude=$(cat && printf '%s\n' '*.acp-conflict' '.acp-broker-*.tmp')
# SIDE usually exists already, so a script that is killed here must leave nothing incomplete.
if [ "$exclude" != "$(cat "$side/info/exclude")" ]; then
	printf '%s\n' "$exclude" >"$side/info/exclude.new"
	mv -f "$side/info/exclude.new" "$side/info/exclude"
fi
