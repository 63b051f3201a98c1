# SPDX-License-Identifier: MIT
# Writes a big file out as it is. Arguments: its path, after "./". No words are told.
trap - EXIT
use_side
write_functions
is_plain_file "$1"
rm -rf "$work"
exec cat "$1"
