# SPDX-License-Identifier: MIT
# Makes the folder of a workspace, private as everything above it that has to be made. Arguments:
# BASE FOLDER NAME WHICH; WHICH is "any", or "there" for one that was made before. Answers "root",
# its physical path, "end"; or "failed", why, "end"; or "gone", what is not there, "end".
set -u
unset CDPATH ENV IFS
export LC_ALL=C
umask 077
answer() {
	printf '%s\0' "$@" end
	exit 0
}
base=$1/workspaces folder=$2 name=$3 which=$4
mkdir -p "$base" && cd -P "$base" || answer failed "$base cannot be made or entered"
there=$(env pwd -P && printf .)
there=${there%??}
[ "$which" = any ] || [ -d "./$folder" ] || answer gone "$there/$folder"
mkdir -p "./$folder/$name" && cd -P "./$folder/$name" || answer failed "$there/$folder/$name"
here=$(env pwd -P && printf .)
here=${here%??}
[ "$here" = "$there/$folder/$name" ] || answer failed "$there/$folder/$name leads elsewhere"
answer root "$here"
