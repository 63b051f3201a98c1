# SPDX-License-Identifier: MIT
# Makes the folder of a workspace; the folder, and every missing folder above it, is made private.
# Arguments: BASE FOLDER NAME WHICH PLACE. WHICH is "any", or "there" if the folder was made before.
# Answers with "root", its physical path, "end"; or "failed", the reason, "end"; or "gone", the
# missing path, "end".
#
# PLACE is empty, or the place in FOLDER, instead of NAME, for a part of a repository
# (base/user_repository.h). A file .place records it. A folder that was made before stays in its
# place.
set -u
unset CDPATH ENV IFS
export LC_ALL=C
umask 077
answer() {
	printf '%s\0' "$@" end
	exit 0
}
base=$1/workspaces folder=$2 name=$3 which=$4 place=$5
mkdir -p "$base" && cd -P "$base" || answer failed "$base cannot be made or entered"
there=$(env pwd -P && printf .)
there=${there%??}
[ "$which" = any ] || [ -d "./$folder" ] || answer gone "$there/$folder"
# Whether nothing was made in it yet. While the file .place is written, it has another name.
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
