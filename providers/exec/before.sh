# SPDX-License-Identifier: MIT
# Defines acp_before for remote/start.sh on a platform whose command `exec` runs that script. The
# caller defines acp_earlier, which ends the processes that lost connections of this broker have
# left; acp_copy, the file that copy-in has brought or start has mounted, or ''; and acp_is_shown,
# "yes" if start has mounted it. It prints "env NAME=VALUE" for each variable in the environment
# of a command there.
acp_tell_environment() {
	acp_mark=$(printf '\001')
	tr '\n\000' '\001\n' <"/proc/$$/environ" | while IFS= read -r acp_line; do
		case $acp_line in
		*"$acp_mark"* | ACP_BROKER_*) ;;
		*) [ "${#acp_line}" -gt 2000 ] || printf 'env %s\n' "$acp_line" ;;
		esac
	done
}

# Executes a copy only if nobody but this user or root can have written it. A file that start has
# mounted is read-only, and its owner is a user outside of the instance.
acp_try_copy() {
	[ -n "$acp_copy" ] && [ -f "$acp_copy" ] || return 0
	set -- $(ls -ldn "$acp_copy")
	case $1 in
	-rwx?-??-?*) [ "$3" = 0 ] || [ "$3" = "$acp_uid" ] || [ -n "$acp_is_shown" ] || return 0 ;;
	*) return 0 ;;
	esac
	acp_name=${acp_copy##*/}
	cd -P "${acp_copy%/*}/" && acp_try "$acp_name" || return 0
	acp_folder=$(pwd -P)
	acp_become
}

acp_before() {
	acp_earlier || return 1
	acp_tell_environment
	acp_try_copy
}
