# SPDX-License-Identifier: MIT
# Prints the state of a file, as numbers.
walk "$@"
facts=$(stat -c '%f %s %u %g %h %i %d %X %Y %Z %b %o' "./$name" 2>/dev/null) || missing
answer facts "$facts"
