# SPDX-License-Identifier: MIT
# Defines acp_before for remote/start.sh on a platform whose command `exec` runs that script. The
# caller defines:
#
#     acp_earlier    a function that ends the processes which lost connections of this broker
#                    left running
#     acp_copy       the runner's file, which copy-in has brought, or ''
#
# acp_before prints "env NAME=VALUE" for each variable in the environment of a command there. It
# leaves out our own variables, the user's token for Slurm, and values that contain a newline or are
# too long for a line.
acp_tell_environment() {
	acp_mark=$(printf '\001')
	tr '\n\000' '\001\n' <"/proc/$$/environ" | while IFS= read -r acp_line; do
		case $acp_line in
		*"$acp_mark"* | ACP_BROKER_* | SLURM_JWT=*) ;;
		*) [ "${#acp_line}" -gt 2000 ] || printf 'env %s\n' "$acp_line" ;;
		esac
	done
}

# Executes the file acp_copy only if it belongs to this user or to root, and nobody else can write
# it.
acp_try_copy() {
	[ -n "$acp_copy" ] && [ -f "$acp_copy" ] || return 0
	set -- $(ls -ldn "$acp_copy")
	case $1 in
	-rwx?-??-?*) [ "$3" = 0 ] || [ "$3" = "$acp_uid" ] || return 0 ;;
	*) return 0 ;;
	esac
	acp_name=${acp_copy##*/}
	cd -P "${acp_copy%/*}/" && acp_try "$acp_name" || return 0
	acp_folder=$(pwd -P)
	acp_become
}

# A platform may start commands in an empty environment. The user database then has the missing
# variables: a line NAME:PASSWORD:ID:GROUP:TEXT:HOME:SHELL.
acp_complete_environment() {
	[ -z "${HOME-}" ] || [ -z "${USER-}" ] || return 0
	acp_entry=$(getent passwd "$acp_uid") || return 0
	case $acp_entry in
	*/nologin | */false) SHELL=${SHELL:-/bin/sh} ;;
	esac
	: "${USER:=${acp_entry%%:*}}" "${SHELL:=${acp_entry##*:}}"
	acp_entry=${acp_entry%:*}
	: "${LOGNAME:=$USER}" "${HOME:=${acp_entry##*:}}"
	export HOME USER LOGNAME SHELL PATH
}

acp_before() {
	acp_complete_environment
	acp_earlier || return 1
	acp_tell_environment
	acp_try_copy
}
