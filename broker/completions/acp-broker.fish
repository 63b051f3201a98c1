# SPDX-License-Identifier: MIT
# fish asks acp-broker itself what may come; broker/cli/complete.h has the answers.
function __acp_broker_complete
    set -l words (commandline -opc)
    set -l current "$(commandline -ct)"
    for line in ($words[1] __complete $words[2..-1] $current 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current
            case :folders
                __fish_complete_directories $current
            case :programs
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c acp-broker -f -a '(__acp_broker_complete)'
