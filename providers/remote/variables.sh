# SPDX-License-Identifier: MIT
# acp_tell_variables tells those of a command's variables that a program needs, as lines
# "set NAME=VALUE". Given: acp_n. What is longer than a line may be comes from the login shell
# alone; a character has 4 bytes.
acp_tell_variables() {
	for acp_variable in HOME USER LOGNAME SHELL PATH LANG LC_ALL LC_CTYPE LC_MESSAGES \
		LC_COLLATE LC_TIME LC_NUMERIC LC_MONETARY TMPDIR TERM; do
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
