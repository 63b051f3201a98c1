# SPDX-License-Identifier: MIT
# acp_tell_variables prints the variables that programs need, as they are in the environment of a
# command: lines "set NAME=VALUE". The caller sets acp_n, and acp_more to the names of further
# variables. The function leaves out values that contain a newline or may be too long for a line (a
# character has up to 4 bytes); only the login shell reports those.
acp_tell_variables() {
	for acp_variable in HOME USER LOGNAME SHELL PATH LANG LC_ALL LC_CTYPE LC_MESSAGES \
		LC_COLLATE LC_TIME LC_NUMERIC LC_MONETARY TMPDIR TERM ${acp_more-}; do
		eval "acp_value=\${$acp_variable-} acp_is_set=\${$acp_variable+yes}"
		case $acp_is_set$acp_value in
		'' | *"$acp_n"*) ;;
		*)
			[ "${#acp_value}" -gt 2000 ] ||
				printf 'set %s=%s\n' "$acp_variable" "$acp_value"
			;;
		esac
	done
}
