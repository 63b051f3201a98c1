# SPDX-License-Identifier: MIT
# Prints where a path leads. Names at its end may be missing; they are kept.
absent() {
	last=$name
	while [ -n "$rest" ]; do
		take
		last=$last/$name
	done
	name=$last is_over=yes
}
walk "$@"
case $name in
.) answer path "$root$at" ;;
*) answer path "$root$at/$name" ;;
esac
