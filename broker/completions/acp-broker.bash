# SPDX-License-Identifier: MIT
# bash asks acp-broker itself what may come; broker/cli/complete.h has the answers.
_acp_broker() {
    local current=${COMP_WORDS[COMP_CWORD]} line kind=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :*) kind=$line ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $kind in
    :files)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        ;;
    :folders)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        ;;
    :programs) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
    esac
}
complete -F _acp_broker acp-broker
