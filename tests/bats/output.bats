#!/usr/bin/env bats
# What scripts rely on: JSON that is nothing but JSON, no escape sequences outside a terminal,
# names that cannot act on the terminal, exit codes.

load helper

# json_only COMMAND...: stdout is one JSON document, stderr may hold human text; status 0.
json_only()
{
    local status=0
    openshell "$@" -o json >"$ROOT/out" 2>"$ROOT/err" || status=$?
    if ((status)) || ! json d <"$ROOT/out" >/dev/null; then
        echo "openshell $* -o json: status $status"
        cat "$ROOT/out" "$ROOT/err"
        return 1
    fi
}

# json_failure COMMAND...: stdout is empty, stderr is one JSON object with code, reason, message
# and hint; status 1.
json_failure()
{
    local status=0
    openshell "$@" -o json >"$ROOT/out" 2>"$ROOT/err" || status=$?
    if ((status != 1)) || [[ -s $ROOT/out ]] ||
        ! json "d['code'], d['reason'], d['message'], d['hint']" <"$ROOT/err" >/dev/null; then
        echo "openshell $* -o json: status $status"
        cat "$ROOT/out" "$ROOT/err"
        return 1
    fi
}

@test "with -o json, stdout is one JSON document, from the first command on" {
    # With no gateway, and with the gateway being started on the way.
    json_only status
    json_only gateway list
    json_only sandbox list
    expect "$(json "d['sandboxes']" <out)" "[]"
    expect "$(json "d['next_page_token']" <out)" ""
    json_only sandbox create --name job --detach
    expect "$(json "d['name']" <out)" job
    expect "$(json "d['phase']" <out)" Ready
    json_only sandbox get job
    json_only sandbox list
    expect "$(json "len(d['sandboxes'])" <out)" 1
    json_only status
    json_only gateway list
    json_only gateway status
}

@test "with -o json, a failure is one JSON object on stderr and nothing on stdout" {
    local long
    printf -v long 'a%.0s' $(seq 64)
    json_failure sandbox get nosuch
    expect "$(json "d['code']" <err)" NOT_FOUND
    json_failure sandbox create --name "$long" --detach
    expect "$(json "d['code']" <err)" INVALID_ARGUMENT
    contains "$(json "d['message']" <err)" name
    create job
    json_failure sandbox create --name job --detach
    expect "$(json "d['code']" <err)" ALREADY_EXISTS
    json_failure sandbox list --page-token nonsense
    json_failure sandbox list --selector nonsense
    json_failure --gateway nosuch sandbox list
    json_failure --gateway-endpoint "unix:$ROOT/nothing.sock" sandbox list
}

@test "the record has the documented keys" {
    create job --label k=v
    openshell sandbox get job -o json >out
    for key in id name workspace labels annotations resource_version created_at phase \
        current_policy_version exit_code conditions configuration_admission provisioning \
        restart_policy restart_count; do
        json "'$key' in d" <out | grep -q true || {
            echo "no key $key"
            cat out
            false
        }
    done
    [[ $(json "d['created_at']" <out) =~ ^20[0-9]{2}-[0-9]{2}-[0-9]{2}\ [0-9:]{8}$ ]]
    expect "$(json "d['configuration_admission']['state']" <out)" accepted
    expect "$(json "d['workspace']" <out)" default
    # Two-space pretty print, one newline at the end.
    expect "$(tail -c 2 out | od -An -c | tr -d ' ')" '}\n'
    expect "$(sed -n '2s/[^ ].*//p' out)" "  "
}

@test "no escape sequences into pipes and files" {
    create job
    local command
    for command in 'sandbox list' 'sandbox get job' status 'gateway list' 'gateway status' help \
        'sandbox --help' 'sandbox create --help' 'sandbox get nosuch' 'sandbox nosuch' nosuch \
        'sandbox create --name job --detach' 'sandbox stop job' 'sandbox start job' \
        'sandbox delete job'; do
        # shellcheck disable=SC2086 # words
        openshell $command >out 2>&1 || true
        ! grep -q $'\e' out || {
            echo "openshell $command:"
            cat -v out
            false
        }
    done
}

@test "NO_COLOR and TERM=dumb hold on a terminal too" {
    openshell gateway start
    for setting in NO_COLOR=1 TERM=dumb; do
        env TERM=xterm "$setting" timeout 20 \
            script -qec "$PRODUCT/bin/openshell sandbox list" /dev/null >out </dev/null 3>&-
        ! grep -q $'\e' out
    done
}

@test "a name with control bytes is shown escaped, never raw" {
    local bad verb
    for bad in $'x\e[2J\e]52;c;QQ==\a' $'x\ry' $'x\ny' $'x\xc2\x9b2J' $'x\xff'; do
        for verb in get stop start delete 'exec'; do
            if [[ $verb == exec ]]; then
                openshell sandbox exec "$bad" -- true >out 2>&1 || true
            else
                openshell sandbox "$verb" "$bad" >out 2>&1 || true
            fi
            no_control_bytes out || {
                echo "$verb"
                false
            }
        done
        openshell sandbox create "--name=$bad" --detach >out 2>&1 && false
        no_control_bytes out
        openshell "$bad" >out 2>&1 && false
        no_control_bytes out
        openshell sandbox "$bad" >out 2>&1 && false
        no_control_bytes out
        openshell sandbox list "--$bad" >out 2>&1 && false
        no_control_bytes out
        openshell --gateway "$bad" sandbox list >out 2>&1 && false
        no_control_bytes out
    done
    [ -z "$(names)" ]
}

no_control_bytes()
{
    "$PYTHON" - "$1" <<'EOF'
import re, sys
data = open(sys.argv[1], 'rb').read()
try:
    text = data.decode()
except UnicodeDecodeError as e:
    sys.exit('not UTF-8: %r' % data)
if re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f]', text):
    sys.exit('control bytes: %r' % data)
EOF
}

@test "usage errors are 2 and on stderr, help is 0 and on stdout" {
    local command
    for command in 'sandbox get a b' 'sandbox delete' 'sandbox create --nosuch' 'sandbox list -o xml' \
        'sandbox exec' 'sandbox exec job --timeout x -- true' 'sandbox exec job --timeout -1 -- true' \
        'sandbox list --page-size x' 'sandbox create --name' 'sandbox create --env X --detach' \
        'sandbox list --ids --names' 'gateway start extra'; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr openshell $command
        [[ $status == 2 && -z $output && -n $stderr ]] || {
            echo "openshell $command: status $status, stdout '$output', stderr '$stderr'"
            false
        }
    done
    for command in --help help 'sandbox --help' sandbox 'sandbox create --help' 'sandbox exec -h' \
        'gateway --help' 'status --help' --version 'sandbox --version' 'help sandbox'; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr openshell $command
        [[ $status == 0 && -n $output && -z $stderr ]] || {
            echo "openshell $command: status $status, stdout '$output', stderr '$stderr'"
            false
        }
    done
    [ -z "$(gateway_pid)" ]
}

@test "a mistyped group or verb gets a suggestion" {
    run openshell sandbxo list
    ((status == 2 || status == 1))
    contains "$output" sandbox
    run openshell sandbox lsit
    ((status == 2 || status == 1))
    contains "$output" list
}

@test "output that cannot be written is a failure" {
    [[ -e /dev/full ]] || skip "no /dev/full"
    create job
    local status=0
    openshell sandbox list >/dev/full 2>err || status=$?
    expect "$status" 1
    status=0
    openshell sandbox get job -o json >/dev/full 2>err || status=$?
    expect "$status" 1
    status=0
    openshell sandbox exec job -- echo lost >/dev/full 2>err || status=$?
    ((status != 0))
    [ -s err ]
}
