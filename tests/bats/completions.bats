#!/usr/bin/env bats
# Completions, in the shells themselves: bash and zsh on a terminal of their own, fish by what it
# offers for a line. tests/check/manual sees to it that every command and option is in the scripts.

load helper

# In the order of `sort`; a value after "--option=" without the option.
offers()
{
    local line=$2 script=$PRODUCT/share
    case $1 in
    bash)
        "$PYTHON" "$BATS_TEST_DIRNAME/complete.py" \
            "$script/bash-completion/completions/openshell" "$line"
        ;;
    zsh)
        zsh -f "$BATS_TEST_DIRNAME/complete.zsh" "$script/zsh/site-functions" "$line"
        ;;
    fish)
        fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
            "$script/fish/vendor_completions.d/openshell.fish" "$line" | cut -f 1
        ;;
    esac 3>&- | sed 's/^--[a-z-]*=\(.\)/\1/; s,/$,,' | LC_ALL=C sort -u
}

# each LINE WORDS: every shell offers these words for this line, and no others. Names that do not
# come within the deadline are not offered, which on a busy machine is no mistake: it may be tried
# again.
each()
{
    local shell wanted offered try
    # shellcheck disable=SC2086 # words
    wanted=$([[ -z $2 ]] || printf '%s\n' $2 | LC_ALL=C sort)
    for shell in bash zsh fish; do
        command -v "$shell" >/dev/null || continue
        for try in {1..8}; do
            offered=$(offers "$shell" "$1")
            [[ $offered == "$wanted" ]] && continue 2
            [[ -n $wanted ]] || break
        done
        echo "$shell, '$1': wanted [$2], got [${offered//$'\n'/ }] (try $try)"
        return 1
    done
}

# names KIND WORDS: what __complete prints, within the deadline in one of several tries.
names()
{
    local try printed
    for try in {1..20}; do
        printed=$(openshell __complete "$1")
        [[ $printed == "$2" ]] && return
    done
    echo "wanted [$2], got [$printed] (try $try)"
    return 1
}

# each_has LINE WORD: every shell offers it, perhaps among others.
each_has()
{
    local shell
    for shell in bash zsh fish; do
        command -v "$shell" >/dev/null || continue
        if ! offers "$shell" "$1" | grep -qxF -e "$2"; then
            echo "$shell, '$1': '$2' is missing in [$(offers "$shell" "$1" | tr '\n' ' ')]"
            return 1
        fi
    done
}

each_lacks()
{
    local shell
    for shell in bash zsh fish; do
        command -v "$shell" >/dev/null || continue
        if offers "$shell" "$1" | grep -qxF -e "$2"; then
            echo "$shell, '$1': '$2' is offered"
            return 1
        fi
    done
}

milliseconds_of()
{
    local start end
    start=$(date +%s%N)
    "$@" >/dev/null
    end=$(date +%s%N)
    echo $(((end - start) / 1000000))
}

@test "all three shells are here to be tested" {
    local shell
    for shell in bash zsh fish; do
        command -v "$shell" >/dev/null || skip "$shell is not installed"
    done
}

@test "groups and commands of a single word, and no aliases" {
    each 'openshell ' "sandbox gateway $(openshell --help |
        awk '/^  / && on { print $1 } { on = /^by themselves/ || (on && /^  /) }')"
    each 'openshell sa' sandbox
    each 'openshell sandb' sandbox
    each_lacks 'openshell ' sb
    each_lacks 'openshell ' __complete
    each_lacks 'openshell __' __complete
}

@test "verbs, also after an alias and after global options" {
    local verb
    for verb in create exec list get stop start delete; do
        each_has 'openshell sandbox ' "$verb"
        each_has 'openshell sb ' "$verb"
        each_has 'openshell -v --workspace ours --color=never sandbox ' "$verb"
    done
    each 'openshell sandbox cr' create
    each 'openshell -g x gw sto' stop
    each 'openshell help sandbox cr' create
    each 'openshell sandbox help cr' create
    each_has 'openshell help ' gateway
    each_has 'openshell help ' status
}

@test "options of the command and of all commands, without the hidden ones" {
    local option
    for option in --name --from --detach --env --output --gateway --workspace --help; do
        each_has 'openshell sandbox create --' "$option"
    done
    each_has 'openshell --' --gateway
    each_has 'openshell sandbox --' --workspace
    each_lacks 'openshell sandbox create --' --keep
    each_lacks 'openshell sandbox list --' --detach
    each 'openshell sandbox list --page-s' --page-size
}

@test "values that the table knows" {
    each 'openshell sandbox get -o ' 'table yaml json'
    each 'openshell sandbox get --output ' 'table yaml json'
    each 'openshell sandbox get --output=' 'table yaml json'
    each 'openshell sandbox get --output=js' json
    each 'openshell sandbox list --all-workspaces --output y' yaml
    each 'openshell --color ' 'auto always never'
    each 'openshell sandbox get --color=a' 'auto always'
    each 'openshell sandbox --color never get --output t' table
    each 'openshell completions ' 'bash zsh fish'
}

@test "values that nobody knows are not guessed" {
    mkdir dir
    touch file
    each 'openshell sandbox create --name ' ''
    each 'openshell sandbox create --env ' ''
    each 'openshell sandbox exec -w ' ''
    each 'openshell --gateway-endpoint ' ''
}

@test "directories for an option that takes one, files for the program after --" {
    mkdir kept other
    touch file
    local all
    all=$(echo *)
    each_has 'openshell sandbox create --from ' kept
    each_lacks 'openshell sandbox create --from ' file
    each 'openshell sandbox create --from ke' kept
    each 'openshell sandbox exec some -- ' "$all"
    each 'openshell sandbox exec some -- cat fi' file
    each 'openshell sandbox create --detach -- ' "$all"
    each_lacks 'openshell sandbox exec some -- ls --' --timeout
}

@test "names of sandboxes, of the workspace and the gateway that the line chooses" {
    openshell sandbox create --name first --detach
    openshell sandbox create --name second --detach
    names sandboxes $'first\nsecond'
    each 'openshell sandbox get ' 'first second'
    each 'openshell sb stop ' 'first second'
    each 'openshell sandbox get s' second
    each 'openshell -v sandbox delete first ' 'first second'
    each 'openshell sandbox exec -n ' 'first second'
    each 'openshell sandbox exec --name=f' first
    each 'openshell sandbox exec ' 'first second'
    each 'openshell -g openshell sandbox start f' first
    each 'openshell --workspace nosuch sandbox get ' ''
    each 'openshell sandbox --gateway nosuch get ' ''
    each 'openshell --workspace ' default
    each 'openshell --gateway ' openshell
    each 'openshell -g o' openshell
    openshell sandbox delete --all
    each 'openshell sandbox get x' ''
}

@test "without a gateway there are no names, no message, and no gateway is started" {
    run -0 openshell __complete sandboxes
    expect "$output" ''
    run -0 openshell __complete workspaces
    expect "$output" ''
    run -0 openshell __complete gateways
    expect "$output" ''
    run -0 openshell __complete nosuch
    expect "$output" ''
    run -0 openshell -g nosuch __complete sandboxes
    expect "$output" ''
    each 'openshell sandbox get x' ''
    expect "$(gateway_pid)" ''
    [ ! -e "$STATE/gateway" ]
}

@test "names of gateways come from the configuration; a name that a shell would run is not offered" {
    local name
    for name in near far '$(touch pwned)' 'a b' '-x' 'a;b'; do
        (umask 077 && mkdir -p "$CONFIG/gateways/$name")
        echo '{"gateway_endpoint": "unix:/nowhere"}' >"$CONFIG/gateways/$name/metadata.json"
    done
    mkdir "$CONFIG/gateways/broken"
    echo '{' >"$CONFIG/gateways/broken/metadata.json"
    run -0 openshell __complete gateways
    expect "$output" $'far\nnear'
    each 'openshell -g ' 'far near'
    [ ! -e pwned ]
}

@test "a gateway that does not answer costs no more than the deadline" {
    openshell sandbox create --name job --detach
    local pid taken
    pid=$(gateway_pid)
    kill -STOP "$pid"
    run -0 openshell __complete sandboxes
    taken=$(milliseconds_of openshell __complete sandboxes)
    kill -CONT "$pid"
    expect "$output" ''
    # 90 ms by its own clock; the rest is for a machine that is busy.
    ((taken < 1000))
    names sandboxes job
}

@test "the scripts are printed too, and work when they are read that way" {
    local name
    for name in bash:bash-completion/completions/openshell zsh:zsh/site-functions/_openshell \
        fish:fish/vendor_completions.d/openshell.fish; do
        openshell completions "${name%%:*}" | cmp - "$PRODUCT/share/${name#*:}"
    done
    run -2 openshell completions tcsh
    contains "$output" "bash, zsh and fish"
    run -2 openshell completions
    run -0 bash -c 'source <(openshell completions bash); complete -p openshell'
    contains "$output" _openshell
    if command -v zsh; then
        run -0 zsh -fc 'autoload -Uz compinit; compinit -u -D
            source <(openshell completions zsh); print $_comps[openshell]'
        expect "$output" _openshell
    fi
}

@test "bash loads the script by itself where bash-completion is" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "bash-completion is not installed"
    run -0 env XDG_DATA_DIRS="$PRODUCT/share" bash --norc -ic '
        source /usr/share/bash-completion/bash_completion
        _completion_loader openshell
        complete -p openshell'
    contains "$output" "_openshell openshell"
}
