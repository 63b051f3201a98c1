# SPDX-License-Identifier: MIT
# Makes the folder of a workspace, and every missing folder above it, all of them private.
# Arguments: BASE FOLDER NAME WHICH PLACE. WHICH is "any", or "there" if the folder was made before.
# Answers with "root", the folder's physical path, "end"; or "failed", the reason, "end"; or "gone",
# the missing path, "end".
#
# If the workspace is a part of a repository, PLACE is its path in FOLDER, and is used instead of
# NAME (base/user_repository.h); otherwise PLACE is empty. A file .place in FOLDER records it. A
# workspace whose folder was made before stays in its place.
set -u
unset CDPATH ENV IFS
export LC_ALL=C
umask 077
answer() {
	printf '%s\0' "$@" end
	exit 0
}
base=$1/workspaces folder=$2 name=$3 which=$4 place=$5
mkdir -p "$base" && cd -P "$base" ||
	answer failed "$base cannot be made or entered: runtime-root can name another folder"
there=$(env pwd -P && printf .)
there=${there%??}
[ "$which" = any ] || [ -d "./$folder" ] || answer gone "$there/$folder"
# Whether FOLDER has nothing in it yet, except perhaps an incomplete .place, which has another name
# while a script writes it.
is_new() {
	for path in "./$folder"/* "./$folder"/.[!.]*; do
		[ ! -e "$path" ] && [ ! -L "$path" ] || case $path in
		*/.place.*) ;;
		*) return 1 ;;
		esac
	done
}
if [ "$place" ] && is_new; then
	mkdir -p "./$folder" && printf '%s\n' "$place" >"./$folder/.place.$$" &&
		mv -f "./$folder/.place.$$" "./$folder/.place" ||
		answer failed "$there/$folder/.place"
fi
if [ -f "./$folder/.place" ]; then
	IFS= read -r name <"./$folder/.place" || answer failed "$there/$folder/.place"
	case /$name/ in
	*//* | */.*) answer failed "$there/$folder/.place" ;;
	esac
fi
mkdir -p "./$folder/$name" && cd -P "./$folder/$name" || answer failed "$there/$folder/$name"
here=$(env pwd -P && printf .)
here=${here%??}
[ "$here" = "$there/$folder/$name" ] || answer failed "$there/$folder/$name leads elsewhere"
answer root "$here"
