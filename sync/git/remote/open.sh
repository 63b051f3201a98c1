# SPDX-License-Identifier: MIT
# Sees whether the sandbox has what is needed, and makes SIDE. stdin: what is ignored besides
# what the .gitignore files say, for info/exclude.
for tool in git find xargs stat comm cut sort wc head tr sed; do
	command -v "$tool" >/dev/null || fail "tool $tool"
done
make_side
exclude=$(cat && printf '%s\n' '*.acp-conflict' '.acp-broker-*.tmp')
# As a rule it is there: who is killed here, or is still dying, leaves nothing half.
if [ "$exclude" != "$(cat "$side/info/exclude")" ]; then
	printf '%s\n' "$exclude" >"$side/info/exclude.new"
	mv -f "$side/info/exclude.new" "$side/info/exclude"
fi
