# SPDX-License-Identifier: MIT
# Removes the folders of workspaces. Arguments: BASE FOLDER...; answers "removed", "end".
set -u
unset CDPATH ENV IFS
export LC_ALL=C
answer() {
	printf '%s\0' "$@" end
	exit 0
}
base=$1/workspaces
shift
[ -d "$base" ] || answer removed
cd -P "$base" || answer failed "$base"
for folder do
	case $folder in
	'' | . | .. | */*) answer failed "$folder" ;;
	esac
	[ -d "./$folder" ] && [ ! -L "./$folder" ] || continue
	# Read-only folders (for example a cache of modules) are ours as well.
	rm -rf "./$folder" 2>/dev/null || chmod -R u+rwx "./$folder" 2>/dev/null
	rm -rf "./$folder" || answer failed "$folder"
done
answer removed
