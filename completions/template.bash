# Completion of openshell for bash.
# shellcheck shell=bash disable=SC2034,SC2154
# (The variables are set by the tables, and by the caller of each function.)

# Words as they were typed: bash tears them apart at "=" and ":". Sets `line`, without the command's
# own name and up to the cursor, and `cut`, what bash takes for the beginning of the last one.
_openshell_line()
{
    local i joined='' rest=${COMP_LINE:0:COMP_POINT} word
    line=() cut=''
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $rest == [[:space:]]* || $i == 0 ]]; then
            ((i == 0)) || line+=("$joined")
            joined='' cut=''
            rest=${rest#"${rest%%[![:space:]]*}"}
        fi
        cut=$joined
        joined+=${rest:0:${#word}}
        rest=${rest:${#word}}
    done
    [[ ${word-} == [=:] ]] && cut=$joined
    line=("${line[@]:1}" "$joined")
}

# Offers the words given that begin with `wanted`.
_openshell_offer()
{
    local word
    for word; do
        [[ $word == "$wanted"* ]] && COMPREPLY+=("$word")
    done
}

_openshell_offer_kind()
{
    local names
    case $1 in
    words\ *)
        read -ra names <<<"${1#words }"
        _openshell_offer "${names[@]}"
        ;;
    sandboxes | gateways | workspaces)
        mapfile -t names < <(command openshell __complete "$1" -- "${line[@]}" 2>/dev/null)
        _openshell_offer "${names[@]}"
        ;;
    files) compopt -o default ;;
    directories) compopt -o dirnames ;;
    esac
}

# Whether the value of this option is the next word; sets `kind`.
_openshell_wants_value()
{
    local word=$1 i
    kind=nothing
    case $word in
    --*=*) return 1 ;;
    --*) _openshell_value "$command" "$word" ;;
    *)
        for ((i = 1; i < ${#word}; i++)); do
            if _openshell_value "$command" "-${word:i:1}"; then
                ((i + 1 == ${#word}))
                return
            fi
        done
        return 1
        ;;
    esac
}

# Reads the words before the last one. What it finds is in the caller's variables.
_openshell_read()
{
    local word
    for word in "${line[@]:0:${#line[@]}-1}"; do
        if [[ $pending ]]; then
            pending=''
        elif [[ $ended ]]; then
            ((given++))
        elif [[ $word == -- ]]; then
            ended=yes
        elif [[ $word == -?* ]]; then
            _openshell_wants_value "$word" && pending=$kind
        elif [[ $command ]]; then
            ((given++))
        elif [[ $word == help ]]; then
            help=yes
        elif [[ $group ]]; then
            command="$group $word"
            _openshell_command "$command" || unknown=yes
        elif ! _openshell_group "$word"; then
            command=$word
            _openshell_command "$command" || unknown=yes
        fi
    done
}

_openshell_complete_word()
{
    if [[ $unknown ]]; then
        [[ $help ]] || compopt -o default
    elif [[ $ended && $trailing ]]; then
        compopt -o default
    elif [[ $wanted == -* && ! $ended ]]; then
        # shellcheck disable=SC2086 # lists of words
        _openshell_offer $options $_openshell_global
    elif [[ $help && $command ]]; then
        return
    elif [[ $command ]]; then
        local last=$((${#places[@]} - 1))
        if ((last >= 0)) && [[ ${places[last]} == again ]]; then
            last=$((last - 1))
            ((given > last)) && given=$last
        fi
        ((given <= last)) && _openshell_offer_kind "${places[given]}"
    elif [[ $group ]]; then
        # shellcheck disable=SC2086 # a list of words
        _openshell_offer $verbs
    else
        # shellcheck disable=SC2086 # a list of words
        _openshell_offer $_openshell_first
    fi
    return 0
}

_openshell()
{
    local line=() cut group='' verbs='' command='' options='' trailing='' places=()
    local help='' pending='' ended='' unknown='' given=0 kind='' wanted i
    COMPREPLY=()
    _openshell_line
    _openshell_read
    wanted=${line[-1]}
    if [[ $pending ]]; then
        _openshell_offer_kind "$pending"
    elif [[ $wanted == --*=* && ! $ended ]]; then
        if _openshell_value "$command" "${wanted%%=*}"; then
            local before=${wanted%%=*}=
            wanted=${wanted#*=}
            _openshell_offer_kind "$kind"
            COMPREPLY=("${COMPREPLY[@]/#/$before}")
        fi
    else
        _openshell_complete_word
    fi
    # Bash replaces what follows the last break, and only that.
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$cut"}
    done
}

# @TABLES@

complete -F _openshell openshell
