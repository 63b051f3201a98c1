# SPDX-License-Identifier: MIT
# Says what a file is, as numbers.
walk "$@"
facts=$(stat -c '%f %s %u %g %h %i %d %X %Y %Z %b %o' "./$name" 2>/dev/null) || missing
answer facts "$facts"
