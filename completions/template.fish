# Completion of openshell for fish.

# Prints GROUP VERB, or the one word of a command, or GROUP alone, and how many words follow; "--"
# after "--". Only what stands before the cursor counts. Many conditions ask for the same line, so
# the last answer is kept.
function __openshell_position
    set -l tokens (commandline -opc)
    set -l line (string join \x1f -- $tokens | string collect)
    if not set -q __openshell_last_line; or test "$line" != "$__openshell_last_line"
        set -g __openshell_last_line $line
        set -g __openshell_last_position (__openshell_find_position $tokens[2..-1])
    end
    echo -- $__openshell_last_position
end

function __openshell_find_position
    set -l command
    set -l given 0
    set -l skip no
    for token in $argv
        if test $skip = yes
            set skip no
        else if test "$token" = --
            echo -- --
            return
        else if string match -q -- '-?*' $token
            set skip (__openshell_skips "$command" $token)
        else if test -z "$command"
            set command (__openshell_group_of $token; or echo -- $token)
        else if contains -- "$command" $__openshell_groups
            set command "$command $token"
        else if test "$command" = help; and __openshell_group_of $token >/dev/null
            set command "help "(__openshell_group_of $token)
        else
            set given (math $given + 1)
        end
    end
    echo -- $command $given
end

# yes when the value of this option is the next word.
function __openshell_skips --argument-names command token
    switch $token
        case '--*=*'
            echo no
        case '--*'
            __openshell_takes_value $command $token; and echo yes; or echo no
        case '*'
            set -l letters (string split '' -- (string sub -s 2 -- $token))
            set -l last $letters[-1]
            for i in (seq (count $letters))
                if __openshell_takes_value $command -$letters[$i]
                    test $i = (count $letters); and echo yes; or echo no
                    return
                end
            end
            echo no
    end
end

# Whether the cursor stands at word NUMBER (from 0) of COMMAND; without NUMBER, at any of them.
function __openshell_at
    set -l position (__openshell_position)
    if set -q argv[2]
        test "$position" = (string trim -- "$argv[1] $argv[2]")
    else
        string match -q -r -- '^'$argv[1]' \d+$' $position
    end
end

function __openshell_after_dashes
    test (__openshell_position) = --
end

function __openshell_before_dashes
    test (__openshell_position) != --
end

# The same for a word from NUMBER on.
function __openshell_from
    set -l position (string match -r -- '^'$argv[1]' (\d+)$' (__openshell_position))
    and test $position[2] -ge $argv[2]
end

function __openshell_names
    set -l tokens (commandline -opc)
    command openshell __complete $argv[1] -- $tokens[2..-1] 2>/dev/null
end

# @TABLES@
