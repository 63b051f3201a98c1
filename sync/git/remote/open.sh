# SPDX-License-Identifier: MIT
# Sees whether the sandbox has what is needed, and makes SIDE. stdin: what is ignored besides
# what the .gitignore files say, for info/exclude.
for tool in git find xargs stat comm cut sort wc head tr sed; do
	command -v "$tool" >/dev/null || fail "tool $tool"
done
make_side
cat >"$side/info/exclude.new"
printf '%s\n' '*.acp-conflict' '.acp-broker-*.tmp' >>"$side/info/exclude.new"
mv -f "$side/info/exclude.new" "$side/info/exclude"
