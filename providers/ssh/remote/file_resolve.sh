# SPDX-License-Identifier: MIT
# Says where a path leads. Last names that do not exist are kept.
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
