# SPDX-License-Identifier: MIT
# Brings a tree's objects to SIDE. Argument: the tree FROM that the stream begins with.
# stdin: a stream for git-fast-import(1) that sets refs/acp-broker/to.
use_side
git cat-file -e "$1^{tree}" 2>/dev/null || fail missing
git fast-import --quiet --force --done --depth=0 >&2
say tree "$(git rev-parse --verify -q 'refs/acp-broker/to^{tree}')" 0
rm -rf "$work"
