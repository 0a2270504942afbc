#compdef openshell
# Completion of openshell for zsh.

# Names that the gateway or the configuration knows.
_openshell_names()
{
    local -a names expl
    names=("${(@f)$(command openshell __complete $1 -- "${(@)openshell_line}" 2>/dev/null)}")
    names=(${names:#})
    _wanted $1 expl $1 compadd -a names
}

_openshell_arguments()
{
    _arguments -s -S "$@" "${_openshell_global[@]}"
}

_openshell_group_or_command()
{
    _describe -t commands 'command of openshell' _openshell_first
}

# help [GROUP] [VERB]
_openshell_help()
{
    if (( CURRENT == 2 )); then
        _openshell_group_or_command
    elif (( CURRENT == 3 && ${+_openshell_groups[$words[2]]} )); then
        _describe -t commands verb _openshell_verbs_${_openshell_groups[$words[2]]}
    fi
}

# GROUP VERB ...: `words` begins with the group.
_openshell_in_group()
{
    local group=$1 curcontext=$curcontext state line ret=1
    local -A opt_args
    _arguments -C -s -S -A '-*' "${_openshell_global[@]}" ': :->verb' '*:: :->rest' && ret=0
    case $state in
    verb) _describe -t commands "verb of $group" _openshell_verbs_$group && ret=0 ;;
    rest)
        curcontext=${curcontext%:*}-$words[1]:
        if (( ${+functions[_openshell-$group-$words[1]]} )); then
            _openshell-$group-$words[1] && ret=0
        elif [[ $words[1] == help ]]; then
            (( CURRENT == 2 )) && _describe -t commands "verb of $group" _openshell_verbs_$group &&
                ret=0
        else
            _files && ret=0
        fi
        ;;
    esac
    return ret
}

_openshell()
{
    local curcontext=$curcontext state line ret=1
    local -A opt_args
    local -a openshell_line
    openshell_line=("${(@Q)words[2,CURRENT]}")
    # After "--" stands a program of the sandbox, with its own arguments.
    if (( ${words[(i)--]} < CURRENT )); then
        _files
        return
    fi
    _arguments -C -s -S -A '-*' "${_openshell_global[@]}" ': :->first' '*:: :->rest' && ret=0
    case $state in
    first) _openshell_group_or_command && ret=0 ;;
    rest)
        curcontext=${curcontext%:*}-$words[1]:
        if (( ${+_openshell_groups[$words[1]]} )); then
            _openshell_in_group ${_openshell_groups[$words[1]]} && ret=0
        elif [[ $words[1] == help ]]; then
            _openshell_help && ret=0
        elif (( ${+functions[_openshell-$words[1]]} )); then
            _openshell-$words[1] && ret=0
        else
            _files && ret=0
        fi
        ;;
    esac
    return ret
}

# @TABLES@

# Autoloaded as _openshell it completes at once; otherwise it is being read by a shell.
if [[ $funcstack[1] == _openshell ]]; then
    _openshell "$@"
else
    compdef _openshell openshell
fi
