# SPDX-License-Identifier: MIT
# Comes before every script for a file. Arguments: LINKS PATH DETAIL ROOT...
#
# PATH is absolute; LINKS says whether links on the path are "followed" or "refused"; each ROOT is
# the physical path of a folder. The answer consists of words on stdout that end in NUL; the last
# one is "end". Needs a POSIX sh and coreutils.
#
# The script walks a path name by name, and reads and walks every link by the same rules. Its
# working directory is the folder that it has reached. At the end of the walk, it asks the kernel
# whether that folder is still below the root. From then on, it uses only ./NAME.
set -u
unset CDPATH ENV IFS
export LC_ALL=C
links=$1 path=$2 detail=$3
shift 3

answer() {
	printf '%s\0' "$@" end
	exit 0
}

refuse() {
	answer refused "$1"
}

missing() {
	answer missing "${1:-No such file or directory}"
}

# Removes slashes and the names "." from the beginning of the rest of the path.
strip() {
	while :; do
		case $rest in
		/*) rest=${rest#/} ;;
		./*) rest=${rest#./} ;;
		.) rest= ;;
		*) return 0 ;;
		esac
	done
}

# Takes the next name from the rest.
take() {
	name=${rest%%/*}
	rest=${rest#"$name"}
	strip
}

# Compares the kernel's path of the working directory with ours.
is_here() {
	[ "$(readlink -n /proc/self/cwd 2>/dev/null && printf .)" = "$root$at." ]
}

enter_root() {
	root=$1 at=
	[ -d "$root" ] || missing
	cd -P "$root" 2>/dev/null
}

# Outside of the roots, the walk only compares its path with the roots, until the path leads to one.
look_for_root() {
	for candidate do
		if [ "$candidate" = "$at" ]; then
			enter_root "$candidate"
			return
		fi
	done
}

step_outside() {
	[ -n "$rest" ] || refuse "it leads out of the session's roots"
	take
	case $name in
	..) at=${at%/*} ;;
	*) at=$at/$name ;;
	esac
	look_for_root "$@"
}

step_up() {
	[ "$links" = followed ] || refuse 'it has to be free of links and dots, and is not'
	if [ -n "$at" ]; then
		at=${at%/*}
		cd -P .. 2>/dev/null
	else
		at=${root%/*} root=
		look_for_root "$@"
	fi
}

follow() {
	[ "$links" = followed ] || refuse 'it has to be free of links and dots, and is not'
	target=$(readlink -n "./$name" 2>/dev/null && printf .) || return 1
	target=${target%.}
	count=$((count + 1))
	[ "$count" -le 40 ] || refuse 'it has too many links'
	rest=$target/$rest
	case $target in
	/*) root= at= ;;
	esac
	strip
}

step_into() {
	if [ -d "./$name" ]; then
		[ -x "./$name" ] || answer failed 'Permission denied'
		at=$at/$name
		cd -P "./$name" 2>/dev/null
	elif [ -e "./$name" ]; then
		missing 'Not a directory'
	else
		case /$rest/ in
		*/../*) missing ;;
		esac
		absent
	fi
}

# Called if a folder on the path is missing. Some scripts define their own function instead.
absent() {
	missing
}

begin() {
	root= at= name= count=0 rest=$path
	strip
	[ "$links" = refused ] || return 0
	best=
	for candidate do
		case $path in
		"$candidate" | "$candidate"/*)
			[ "${#candidate}" -le "${#best}" ] || best=$candidate
			;;
		esac
	done
	[ -n "$best" ] || refuse "it leads out of the session's roots"
	rest=${path#"$best"}
	strip
	enter_root "$best"
}

# Afterwards, the file at PATH is ./$name in the working directory, if it exists. For a root itself,
# $name is ".".
walk_once() {
	begin "$@" || return 1
	is_over=
	while [ -z "$is_over" ]; do
		if [ -z "$root" ]; then
			step_outside "$@" || return 1
		elif [ -z "$rest" ]; then
			name=. is_over=yes
		else
			take
			if [ "$name" = .. ]; then
				step_up "$@" || return 1
			elif [ -L "./$name" ]; then
				follow || return 1
			elif [ -z "$rest" ]; then
				is_over=yes
			else
				step_into || return 1
			fi
		fi
	done
	is_here
}

walk() {
	tries=0
	until walk_once "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 8 ] || refuse 'a folder on its way was replaced by a link'
	done
}

# Reads the mode, size, owner and permissions of ./$name without following a link.
look() {
	facts=$(stat -c '%f %s %u:%g %a' "./$name" 2>/dev/null) || return 1
	set -- $facts
	mode=$((0x$1)) size=$2 owner=$3 bits=$4
	case $bits in
	????) bits=${bits#?} ;;
	esac
}

check_regular() {
	case $((mode & 61440)) in
	32768) ;;
	16384) refuse 'it is a directory' ;;
	40960) refuse 'a link was put in its place' ;;
	*) refuse 'it is not a regular file' ;;
	esac
}
