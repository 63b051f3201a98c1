# SPDX-License-Identifier: MIT
# Replaces or makes a file. DETAIL is "SIZE TOKEN". stdin has the new content, SIZE bytes; the
# script refuses shorter content. TOKEN makes the name of the temporary file unique.
wanted=${detail%% *} temporary=./.acp-broker-${detail#* }.tmp

absent() {
	is_here || return 1
	mkdir "./$name" || [ -d "./$name" ] || answer failed 'a folder could not be made'
	rest=$name/$rest
}

fail() {
	rm -f "$temporary"
	answer failed "$1"
}

walk "$@"
[ "$name" != . ] || refuse 'it is a directory'
exists=
if look; then
	check_regular
	[ -w "./$name" ] || answer failed 'Permission denied'
	exists=yes old_bits=$bits old_owner=$owner
fi
trap 'rm -f "$temporary"; exit 1' HUP INT TERM PIPE
if ! dd of="$temporary" conv=excl,fsync bs=64k status=none; then
	# This dd lacks these flags.
	[ ! -e "$temporary" ] && [ -w . ] && (set -C && cat >"$temporary") && sync "$temporary" ||
		fail 'it could not be written'
fi
final=$name name=$temporary
look || fail 'its temporary file is gone'
name=$final
[ "$size" = "$wanted" ] || fail "its content was cut off: $size of $wanted bytes came"
if [ -n "$exists" ]; then
	# Keeps the permissions in any case. Keeps access lists and attributes if this cp supports
	# them. Keeps the owner, or at least the group, if we may set it.
	cp -P --attributes-only --preserve=mode,xattr "./$name" "$temporary" 2>/dev/null || :
	[ "$owner" = "$old_owner" ] || chown "$old_owner" "$temporary" 2>/dev/null ||
		chown ":${old_owner#*:}" "$temporary" 2>/dev/null || :
	chmod "$old_bits" "$temporary" || fail 'its permissions could not be kept'
fi
mv -fT "$temporary" "./$name" || { [ ! -d "./$name" ] && mv -f "$temporary" "./$name"; } ||
	fail 'it could not be put in its place'
sync . 2>/dev/null || [ ! -r . ] ||
	answer failed 'it was written, but its folder could not be synced'
answer written
