# SPDX-License-Identifier: MIT
# Begins a further stream to a runner that is still running. The runner answers with a line "attach
# NONCE" (providers/mux/wire.h), or this script prints "gone WHY".
#
# The caller sets acp_token (names the run), acp_name (the runner's file) and acp_folder (the folder
# of that file). As in start.sh, we go into the folder first, and then check who owns it.
umask 077
exec 2>/dev/null

acp_gone() {
	printf 'gone %s\n' "$1"
	exit 0
}
cd -P "$acp_folder" && [ "$(pwd -P)" = "$acp_folder" ] ||
	acp_gone 'its folder is not there any more'
set -- $(ls -ldn .)
case $1 in
drwx------*) [ "$3" = "$(id -u)" ] || acp_gone 'its folder is not ours any more' ;;
*) acp_gone 'its folder is not ours any more' ;;
esac
[ -x "./$acp_name" ] || acp_gone 'its program is not there any more'
exec "./$acp_name" attach "$acp_token"
