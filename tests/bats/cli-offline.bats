#!/usr/bin/env bats
# Commands where no gateway runs and none is to be started: choosing a gateway, status, usage.

load helper

teardown()
{
    [ -z "$(gateway_pid)" ]
    leave_environment
}

# metadata NAME JSON: an entry in the user's configuration.
metadata()
{
    (
        umask 077
        mkdir -p "$CONFIG/gateways/$1"
        printf '%s' "$2" >"$CONFIG/gateways/$1/metadata.json"
    )
}

status_field()
{
    openshell status -o json | json "d$1"
}

@test "status with nothing configured" {
    run -0 openshell status
    contains "$output" "No gateway is configured"
    expect "$(openshell status -o json)" $'{\n  "status": "not_configured"\n}'
    expect "$(openshell status -o yaml)" 'status: not_configured'
}

@test "status of a gateway that does not run, by name, by address, by the active gateway" {
    metadata openshell '{"name": "openshell", "local_socket": "'"$RUN"'/gateway.sock"}'
    metadata other '{"name": "other", "gateway_endpoint": "unix:'"$ROOT"'/other.sock"}'
    expect "$(status_field "['status']")" disconnected
    expect "$(status_field "['gateway']")" openshell
    expect "$(status_field "['authentication']['status']")" unverified
    echo '  other ' >"$CONFIG/active_gateway"
    expect "$(status_field "['gateway']")" other
    expect "$(status_field "['server']")" "unix:$ROOT/other.sock"
    expect "$(OPENSHELL_GATEWAY=openshell status_field "['gateway']")" openshell
    expect "$(OPENSHELL_GATEWAY=' ' status_field "['gateway']")" other
    expect "$(openshell -g openshell status -o json | json "d['gateway']")" openshell
    # An address has the name of the gateway that is stored with it, else it is its own name.
    expect "$(openshell --gateway-endpoint "unix:$ROOT/other.sock/" status -o json |
        json "d['gateway']")" other
    expect "$(openshell --gateway-endpoint "unix:/nowhere" status -o json |
        json "d['gateway']")" unix:/nowhere
    expect "$(openshell --gateway-endpoint "unix:/nowhere" -g named status -o json |
        json "d['gateway']")" named
}

@test "a gateway over TLS is classified by status, and refused in words by others" {
    metadata far '{"name": "far", "gateway_endpoint": "https://far.example:17670"}'
    expect "$(openshell -g far status -o json | json "d['status']")" disconnected
    run -1 openshell -g far sandbox list
    contains "$output" "https://far.example:17670"
}

@test "an unknown gateway is an error that says where to look" {
    local name
    for name in nosuch ../x . a/b; do
        run -1 openshell -g "$name" status
        contains "$output" "openshell gateway list"
    done
    run -1 openshell -g nosuch sandbox list -o json
    expect "$(json "d['reason']" <<<"$output")" GatewayUnknown
}

@test "broken metadata is named and says what is wrong, and nothing is started" {
    local text
    for text in '' '{' '[]' '"x"' '{"name": "openshell"}' '{"gateway_endpoint": 5}'; do
        metadata openshell "$text"
        run -1 openshell status
        contains "$output" "$CONFIG/gateways/openshell/metadata.json"
        run -1 openshell sandbox list
        contains "$output" "$CONFIG/gateways/openshell/metadata.json"
    done
    run -0 --separate-stderr openshell gateway list -o json
    expect "$output" "[]"
}

@test "an active gateway that is no name is ignored with a notice" {
    mkdir -m 0700 "$CONFIG"
    printf '../../x\n' >"$CONFIG/active_gateway"
    run -0 openshell status
    contains "$output" "active_gateway"
    contains "$output" "No gateway is configured"
}

@test "the system's gateways are known, and the user's hide them" {
    mkdir -p "$ROOT/system/gateways/site" "$ROOT/system/gateways/both"
    export OPENSHELL_SYSTEM_GATEWAY_DIR=$ROOT/system
    echo '{"gateway_endpoint": "unix:/site"}' >"$ROOT/system/gateways/site/metadata.json"
    echo '{"gateway_endpoint": "unix:/system"}' >"$ROOT/system/gateways/both/metadata.json"
    echo site >"$ROOT/system/active_gateway"
    metadata both '{"gateway_endpoint": "unix:/user", "is_remote": true, "remote_host": "u@h"}'
    expect "$(status_field "['server']")" unix:/site
    openshell gateway list -o json >out
    expect "$(json "[g['name'] for g in d]" <out)" '["both", "site"]'
    expect "$(json "[g['source'] for g in d]" <out)" '["user", "system"]'
    expect "$(json "[g['active'] for g in d]" <out)" '[false, true]'
    expect "$(json "[g['type'] for g in d]" <out)" '["remote", "local"]'
    expect "$(json "d[0]['endpoint']" <out)" unix:/user
    expect "$(json "sorted(d[0])" <out)" '["active", "auth", "endpoint", "is_remote", "name", "remote_host", "resolved_host", "source", "type"]'
    run -0 openshell gateway list
    [[ ${lines[0]} == "  NAME"*ENDPOINT*TYPE*SOURCE*AUTH*REMOTE ]]
    [[ ${lines[1]} == "  both"*unix:/user*u@h ]]
    [[ ${lines[2]} == "* site"*unix:/site*system* ]]
    # A path that is not absolute is not used.
    OPENSHELL_SYSTEM_GATEWAY_DIR=system run -0 openshell gateway list
    contains "$output" OPENSHELL_SYSTEM_GATEWAY_DIR
    lacks "$output" site
}

@test "a configuration directory of somebody else, or a link, is refused" {
    mkdir -m 0700 elsewhere
    ln -s "$ROOT/elsewhere" "$CONFIG"
    run -1 openshell status
    contains "$output" "$CONFIG"
    rm "$CONFIG"
    ((EUID == 0)) || return 0
    mkdir -m 0700 "$CONFIG"
    chown games "$CONFIG"
    run -1 openshell sandbox list
    contains "$output" "$CONFIG"
    chown root "$CONFIG"
}

@test "gateway status and stop without a gateway" {
    run -0 openshell gateway status
    contains "$output" "does not run"
    contains "$output" "$RUN/gateway.sock"
    expect "$(openshell gateway status -o json | json "d['running'], d['pid']")" "[false, null]"
    run -0 openshell gateway stop
    contains "$output" "does not run"
}

@test "gateway stop touches nobody that a lock file names and that does not hold it" {
    local bystander content
    mkdir -m 0700 "$RUN"
    sleep 300 3>&- &
    bystander=$!
    for content in "$bystander $(start_time "$bystander")" "$bystander 1" "$bystander" '' garbage \
        '-1 0' '1 0' '0 0' '99999999999999999999 5'; do
        printf '%s\n' "$content" >"$RUN/gateway.lock"
        run -0 openshell gateway stop
        kill -0 "$bystander"
        run -0 openshell gateway status
        contains "$output" "does not run"
    done
    # A lock that somebody holds under another process's name changes nothing about that.
    printf '%s 1\n' "$bystander" >"$RUN/gateway.lock"
    flock -x "$RUN/gateway.lock" "$PRODUCT/bin/openshell" gateway stop 3>&-
    kill -0 "$bystander"
    kill "$bystander"
}

@test "a gateway that cannot start: the last line of its log, and where that is" {
    mkdir own
    cp -a "$OPENSHELL_EXEC_PATH/." own/
    rm -f own/openshell-gateway
    printf '#!/bin/sh\necho first >&2\necho "the reason is this" >&2\nexit 3\n' >own/openshell-gateway
    chmod +x own/openshell-gateway
    OPENSHELL_EXEC_PATH=$ROOT/own run -1 openshell sandbox list
    contains "$output" "the reason is this"
    contains "$output" "exit code 3"
    contains "$output" "$STATE/gateway/gateway.log"
    lacks "$output" first
    expect "$(stat -c %a "$STATE/gateway/gateway.log")" 600
    # Only what this start wrote counts.
    printf '#!/bin/sh\nexit 3\n' >own/openshell-gateway
    OPENSHELL_EXEC_PATH=$ROOT/own run -1 openshell sandbox list
    lacks "$output" "the reason is this"
    # A line that would act on the terminal does not.
    printf '#!/bin/sh\nprintf "\\033[2Jx\\n" >&2\nexit 3\n' >own/openshell-gateway
    OPENSHELL_EXEC_PATH=$ROOT/own run -1 openshell sandbox list
    lacks "$output" $'\e'
    contains "$output" '\x1b[2Jx'
}

@test "a gateway that is started gets nothing of its parent's but the log and the pipe" {
    mkdir own
    cp -a "$OPENSHELL_EXEC_PATH/." own/
    rm -f own/openshell-gateway
    cat >own/openshell-gateway <<'END'
#!/bin/sh
{
    echo "words: $*"
    for f in /proc/$$/fd/*; do echo "${f##*/} $(readlink "$f")"; done
    echo "cwd: $(readlink /proc/$$/cwd)"
    echo "session: $(cut -d ' ' -f 6 /proc/$$/stat) $$"
    grep SigIgn /proc/self/status
    grep SigBlk /proc/self/status
} >"$XDG_STATE_HOME/seen"
exit 1
END
    chmod +x own/openshell-gateway
    (
        trap '' HUP
        exec 8</etc/hostname 9</etc/passwd
        OPENSHELL_EXEC_PATH=$ROOT/own "$PRODUCT/bin/openshell" sandbox list 3>&-
    ) || true
    local seen
    seen=$(<"$XDG_STATE_HOME/seen")
    contains "$seen" "words: --ready-fd 3"
    contains "$seen" "0 /dev/null"
    contains "$seen" "1 $STATE/gateway/gateway.log"
    contains "$seen" "2 $STATE/gateway/gateway.log"
    contains "$seen" "3 pipe:"
    lacks "$seen" /etc/passwd
    lacks "$seen" /etc/hostname
    contains "$seen" "cwd: /"
    [[ $seen =~ session:\ ([0-9]+)\ ([0-9]+) ]]
    expect "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    # Two real-time signals belong to the C library.
    [[ $seen =~ SigIgn:[[:space:]]*([0-9a-f]+) ]]
    expect "$((0x${BASH_REMATCH[1]} & 0x7fffffff))" 0
    [[ $seen =~ SigBlk:[[:space:]]*([0-9a-f]+) ]]
    expect "$((0x${BASH_REMATCH[1]}))" 0
}

@test "a relative OPENSHELL_EXEC_PATH serves the gateway too, which runs elsewhere" {
    mkdir own
    cp -a "$OPENSHELL_EXEC_PATH/." own/
    rm -f own/openshell-gateway
    printf '#!/bin/sh\necho "path $OPENSHELL_EXEC_PATH" >&2\nexit 3\n' >own/openshell-gateway
    chmod +x own/openshell-gateway
    OPENSHELL_EXEC_PATH=own run -1 openshell sandbox list
    contains "$output" "path $ROOT/own"
}

@test "usage errors say what is wrong with which word, before anything is started" {
    run -2 openshell sandbox exec job ls
    contains "$output" "put -- before the program"
    run -2 openshell sandbox exec job
    contains "$output" "nothing to run"
    run -2 openshell sandbox exec job --
    run -2 openshell sandbox exec -n job job -- true
    contains "$output" "named twice"
    run -2 openshell sandbox exec job --timeout 1.5 -- true
    contains "$output" "'1.5'"
    run -2 openshell sandbox create -o json -- true
    contains "$output" "detach"
    run -2 openshell sandbox create --no-keep --keep
    run -2 openshell sandbox create true
    contains "$output" "put -- before the program"
    run -2 openshell sandbox create --label x
    contains "$output" "label"
    run -2 openshell sandbox create --env 1A=x
    contains "$output" "1A"
    run -2 openshell sandbox create --env $'A\e[2J=x'
    lacks "$output" $'\e'
    run -2 openshell sandbox create --env "X=$(printf '\377')" --detach
    contains "$output" UTF-8
    run -2 openshell sandbox exec job -- echo "$(printf '\377')"
    contains "$output" UTF-8
    run -1 openshell sandbox create --from nowhere --detach
    contains "$output" nowhere
    run -2 openshell sandbox delete --all one
    run -2 openshell sandbox delete
    run -2 openshell sandbox list --ids -o json
    run -2 openshell sandbox list --page-size 1001
    OPENSHELL_PROVISION_TIMEOUT=soon run -2 openshell sandbox create --detach
    contains "$output" OPENSHELL_PROVISION_TIMEOUT
}

@test "a usage error with -o json is one JSON object; --own-exit-code holds for it" {
    run -2 --separate-stderr openshell sandbox list -o json --nosuch
    expect "$output" ""
    expect "$(json "d['code'], d['reason']" <<<"$stderr")" '["INVALID_ARGUMENT", "Usage"]'
    run -2 --separate-stderr openshell sandbox list --nosuch --output=json
    expect "$(json "d['message']" <<<"$stderr")" "unknown option '--nosuch'"
    run -77 openshell sandbox exec --own-exit-code 77 job
    run -77 openshell sandbox exec --nosuch --own-exit-code=77 job -- true
    # What stands after -- is the program's.
    run -2 openshell sandbox exec --nosuch job -- --own-exit-code 77
}

@test "without a name and without a record of one" {
    run -1 openshell --gateway-endpoint "unix:$ROOT/none.sock" sandbox get
    contains "$output" "none.sock"
}

@test "a missing standard descriptor does not become a socket or a file" {
    run -0 openshell status <&-
    run -1 eval 'openshell status >&-'
    run -0 eval 'openshell status 2>&-'
}

@test "the binary under no command's name says so" {
    run -2 "$OPENSHELL_EXEC_PATH/openshell-commands"
    contains "$output" "started by openshell"
    run -0 "$OPENSHELL_EXEC_PATH/openshell-commands" openshell-status
}
