#!/usr/bin/env bats
# Gateways that are known here, what is shown about sandboxes, colours, the pager, pipes that break.

load helper

# on_terminal COMMAND...: runs it on a terminal of its own and prints what came.
on_terminal()
{
    "$PYTHON" - "$@" 3>&- <<'EOF'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
data = b''
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    data += piece
os.waitpid(pid, 0)
sys.stdout.buffer.write(data)
EOF
}

# --- gateways -------------------------------------------------------------------------------

@test "another gateway at a socket: added, used, shown, chosen again, removed" {
    create here
    # The same gateway under another name is as good as another one.
    run --separate-stderr -0 openshell gateway add --name lab "unix:$RUN/gateway.sock"
    expect "$output" ""
    contains "$stderr" lab
    contains "$stderr" "unix:$RUN/gateway.sock"
    expect "$(cat "$CONFIG/active_gateway")" lab
    expect "$(stat -c %a "$CONFIG/gateways/lab" "$CONFIG/gateways/lab/metadata.json" | xargs)" "700 600"
    expect "$(json "d['name'], d['gateway_endpoint'], d['is_remote'], d['auth_mode']" \
        <"$CONFIG/gateways/lab/metadata.json")" "[\"lab\", \"unix:$RUN/gateway.sock\", false, \"plaintext\"]"
    expect "$(openshell sandbox list --names)" here
    openshell gateway list -o json >list.out
    expect "$(json "[(g['name'], g['active'], g['type'], g['source'], g['auth']) for g in d]" <list.out)" \
        '[["lab", true, "local", "user", "plaintext"], ["openshell", false, "local", "user", "plaintext"]]'
    expect "$(json "sorted(d[0])" <list.out)" \
        '["active", "auth", "endpoint", "is_remote", "name", "remote_host", "resolved_host", "source", "type"]'
    openshell gateway list | grep -q '^\* lab '
    # There is one of that name.
    run -1 openshell gateway add --name lab unix:/other.sock
    contains "$output" 'gateway remove lab'
    run -0 openshell gateway select openshell
    expect "$(cat "$CONFIG/active_gateway")" openshell
    run -0 env OPENSHELL_GATEWAY=lab "$PRODUCT/bin/openshell" gateway select openshell
    contains "$output" OPENSHELL_GATEWAY
    run -1 openshell gateway select nosuch
    expect "$(cat "$CONFIG/active_gateway")" openshell
    openshell gateway select lab
    run -0 openshell gateway remove
    contains "$output" "'lab' is removed"
    [[ ! -e $CONFIG/gateways/lab && ! -e $CONFIG/active_gateway ]]
    run -1 openshell gateway remove lab
    expect "$(openshell sandbox list --names)" here
}

@test "gateways that are elsewhere are noted, and what cannot be reached yet says so" {
    local name
    run -0 openshell gateway add gw.example.com
    contains "$output" 'Unix sockets only'
    run -0 openshell gateway add --name plain http://gw.example.com:8080/
    run -0 openshell gateway add --name people https://gw.example.com:8443 \
        --oidc-issuer https://issuer.example.com --oidc-audience us
    expect "$(json "d['oidc_issuer'], d['oidc_client_id'], d['oidc_audience'], d['auth_mode'], d['gateway_port']" \
        <"$CONFIG/gateways/people/metadata.json")" \
        '["https://issuer.example.com", "openshell-cli", "us", "oidc", 8443]'
    openshell gateway list -o json >list.out
    expect "$(json "[[g['name'], g['type'], g['auth'], g['is_remote']] for g in d]" <list.out)" \
        '[["gw.example.com", "cloud", "cloudflare_jwt", true], ["people", "remote", "oidc", true], ["plain", "remote", "plaintext", true]]'
    expect "$(json "' '.join(g['endpoint'] for g in d)" <list.out)" \
        'https://gw.example.com https://gw.example.com:8443 http://gw.example.com:8080'
    for name in gw.example.com plain people; do
        run -1 openshell -g "$name" sandbox list
        contains "$output" 'only Unix sockets'
        contains "$output" 'gateway select openshell'
        run -1 openshell -g "$name" gateway info
        expect "$(openshell -g "$name" status -o json |
            json "d['gateway'], d['status'], d['authentication']['status']")" \
            "[\"$name\", \"disconnected\", \"unverified\"]"
    done
    [[ -z $(gateway_pid) ]]
}

@test "certificates: what is missing is named, those of an installation are taken" {
    run -1 openshell gateway add --name far --remote me@far https://far.example.com:17670
    contains "$output" "$CONFIG/gateways/far/mtls/ca.crt"
    [[ ! -e $CONFIG/gateways/far/metadata.json && ! -e $CONFIG/active_gateway ]]
    mkdir -p tls/client
    echo ca >tls/ca.crt
    echo crt >tls/client/tls.crt
    run -1 env "OPENSHELL_LOCAL_TLS_DIR=$ROOT/tls" "$PRODUCT/bin/openshell" gateway add \
        --name near --local https://127.0.0.1:17670
    contains "$output" tls.key
    echo key >tls/client/tls.key
    run -0 env "OPENSHELL_LOCAL_TLS_DIR=$ROOT/tls" "$PRODUCT/bin/openshell" gateway add \
        --name near --local https://127.0.0.1:17670
    expect "$(cat "$CONFIG/gateways/near/mtls/tls.key")" key
    expect "$(stat -c %a "$CONFIG/gateways/near/mtls/tls.key")" 600
    openshell gateway list | grep -q '^\* near .* mtls'
    # A machine that ssh knows.
    mkdir -p "$CONFIG/gateways/box/mtls"
    touch "$CONFIG/gateways/box/mtls/"{ca.crt,tls.crt,tls.key}
    run -0 openshell gateway add ssh://me@box:17670
    expect "$(json "d['remote_host'], d['is_remote'], d['gateway_port'], d['auth_mode']" \
        <"$CONFIG/gateways/box/metadata.json")" '["me@box", true, 17670, "mtls"]'
    openshell gateway list | grep -q '^  NAME .* REMOTE$'
}

@test "gateway add: what is wrong is a usage error that names it" {
    local bad
    for bad in '' 'unix:relative' 'ftp://x' 'https://h:0' 'https://h:99999' 'https://h/path' \
        'https://me:pw@h' 'ssh://h' 'a b' 'unix:/x' '--local --remote m https://h' \
        '--oidc-audience x https://h' '--name .. https://h' '--name a/b https://h' \
        '--remote m --name x unix:/x' '--oidc-issuer u --remote m https://h' \
        '--local ssh://h:1 --name x'; do
        # shellcheck disable=SC2086 # split on purpose
        run -2 openshell gateway add $bad
    done
    run -2 openshell gateway add "https://h"$'\e[2J'
    lacks "$output" $'\e'
    run -2 openshell gateway add --name $'x\e[2J' https://h
    lacks "$output" $'\e'
    run -1 openshell gateway select $'x\e[2J'
    lacks "$output" $'\e'
    run -1 openshell gateway remove $'x\e[2J'
    lacks "$output" $'\e'
    [[ ! -e $CONFIG/gateways ]] || expect "$(ls "$CONFIG/gateways")" ""
}

@test "the system's gateways can be chosen, not removed" {
    mkdir -p "$ROOT/system/gateways/site"
    echo '{"name": "site", "gateway_endpoint": "unix:/run/site.sock"}' \
        >"$ROOT/system/gateways/site/metadata.json"
    export OPENSHELL_SYSTEM_GATEWAY_DIR=$ROOT/system
    openshell gateway list -o json >list.out
    expect "$(json "[(g['name'], g['source']) for g in d]" <list.out)" '[["site", "system"]]'
    run -1 openshell gateway remove site
    contains "$output" system
    run -0 openshell gateway select site
    openshell gateway list | grep -q '^\* site '
    [[ -e $ROOT/system/gateways/site/metadata.json ]]
}

@test "gateway select on a terminal asks, without one it lists" {
    openshell gateway add --name a unix:/a.sock 2>/dev/null
    openshell gateway add --name b unix:/b.sock 2>/dev/null
    run --separate-stderr -0 openshell gateway select
    contains "$output" a
    contains "$stderr" 'gateway select NAME'
    expect "$(cat "$CONFIG/active_gateway")" b
    "$PYTHON" - "$PRODUCT/bin/openshell" 3>&- <<'EOF'
import os, pty, sys
for answer, active in ((b'1\n', 'a'), (b'b\n', 'b')):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], ['openshell', 'gateway', 'select'])
    data = b''
    while b'Which one?' not in data:
        data += os.read(fd, 4096)
    os.write(fd, answer)
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass
    assert os.waitpid(pid, 0)[1] == 0
    path = os.environ['XDG_CONFIG_HOME'] + '/openshell/active_gateway'
    assert open(path).read().strip() == active, active
EOF
}

@test "gateway info, whoami, status" {
    run -1 openshell gateway info
    contains "$output" 'gateway start'
    openshell gateway start
    openshell gateway info -o json >info.out
    expect "$(json "sorted(d)" <info.out)" \
        '["auth", "compute_drivers", "extensions", "gateway", "server", "status", "version"]'
    expect "$(json "d['status'], d['auth'], d['extensions'], d['compute_drivers'][0]['name']" <info.out)" \
        '["healthy", null, [], "local"]'
    expect "$(json "sorted(d['compute_drivers'][0]['capabilities'])" <info.out)" \
        '["driver_name", "driver_version"]'
    openshell gateway info | grep -q '^Status: *healthy'
    openshell gateway info -o yaml | grep -q '^status: healthy'
    openshell whoami -o json >me
    expect "$(json "sorted(d)" <me)" \
        '["display_name", "identity_provider", "roles", "scopes", "subject"]'
    expect "$(json "d['subject']" <me)" "$(id -un)"
    openshell status -o json >status.out
    expect "$(json "d['status'], d['authentication']['status']" <status.out)" \
        '["connected", "authenticated"]'
    expect "$(json "sorted(d)" <status.out)" \
        '["authentication", "gateway", "server", "status", "version"]'
}

# --- sandboxes ------------------------------------------------------------------------------

# keys FILE EXPRESSION: the sorted keys of an object in it
keys()
{
    json "' '.join(sorted($2))" <"$1"
}

@test "get: the documented keys in JSON and YAML, the same in the block; the policy alone" {
    create demo --label team=red -- sleep 1000
    openshell sandbox get demo -o json >get.json
    expect "$(keys get.json d)" "annotations conditions configuration_admission created_at \
created_from_workload_template current_policy_version endpoint_statuses exit_code id labels \
main_process_instance_id main_process_started_at_ms name next_restart_at_ms phase policy \
policy_source provisioning resource_version restart_count restart_policy revision workspace"
    expect "$(keys get.json "d['conditions'][0]")" "last_transition_time message reason status type"
    expect "$(keys get.json "d['configuration_admission']")" \
        "config_revision error policy_hash policy_version provider_env_revision state"
    expect "$(keys get.json "d['provisioning']")" "admission_start_time attempt_id \
cleanup_completed_time cleanup_error cleanup_retry_time configuration_change_id \
configuration_change_time deadline driver_operation_id driver_operation_pending \
first_rejection_time phase preparation_deadline timeout_time"
    expect "$(json "d['policy_source'], d['policy']['version'], d['provisioning']['phase']" <get.json)" \
        '["sandbox", 1, "ready"]'
    openshell sandbox get demo >get.txt
    local heading
    for heading in Id Name Phase 'Resource version' 'Restart policy' Label Admission Condition \
        'Policy source' 'Policy revision'; do
        grep -q "^$heading: " get.txt
    done
    # The policy alone is what stands in the whole, and is a policy file.
    openshell sandbox get demo --policy-only >policy.yaml
    expect "$(sed '1,/^---$/d' get.txt)" "$(cat policy.yaml)"
    expect "$(head -n 1 policy.yaml)" 'version: 1'
    run -2 openshell sandbox get demo --policy-only -o json
    run -1 openshell sandbox get nosuch --policy-only
    contains "$output" nosuch
    if "$PYTHON" -c 'import yaml' 2>/dev/null; then
        openshell sandbox get demo -o yaml | "$PYTHON" -c '
import json, sys, yaml
assert yaml.safe_load(sys.stdin) == json.load(open("get.json"))'
    fi
    # A list has the same record, without the detail.
    openshell sandbox list -o json >list.json
    expect "$(keys list.json "d['sandboxes'][0]")" "$(keys get.json "set(d) - {'policy_source', \
'revision', 'policy', 'restart_policy', 'main_process_instance_id', 'restart_count', \
'next_restart_at_ms', 'main_process_started_at_ms'}")"
}

@test "list: ids, names, workspaces, the word for nothing; delete --all" {
    run --separate-stderr -0 openshell sandbox list
    expect "$output" 'No sandboxes.'
    expect "$(openshell sandbox list --names)" ""
    expect "$(openshell sandbox list --ids)" ""
    expect "$(openshell sandbox list -o yaml | head -n 1)" 'sandboxes: []'
    create a
    create b
    expect "$(openshell sandbox list --names | xargs)" "a b"
    expect "$(openshell sandbox list --ids)" "$(id_of a)"$'\n'"$(id_of b)"
    expect "$(openshell sandbox list --names --all-workspaces | xargs)" "default/a default/b"
    openshell sandbox list --all-workspaces >table
    grep -q '^WORKSPACE  *NAME  *CREATED  *PHASE$' table
    openshell sandbox list >table
    grep -q '^NAME  *CREATED  *PHASE$' table
    run --separate-stderr -0 openshell sb list --page-size 1
    contains "$stderr" '--page-token'
    run -2 openshell sandbox list --names -o json
    run -2 openshell sandbox delete
    run -2 openshell sandbox delete --all a
    openshell sandbox delete --all
    expect "$(names)" ""
    run -0 openshell sandbox delete --all
}

# --- what is on a terminal, and what is not ----------------------------------------------------

@test "colours: --color, NO_COLOR, FORCE_COLOR, TERM, and both streams" {
    create job
    local command=("$PRODUCT/bin/openshell" sandbox list)
    export TERM=xterm
    contains "$(on_terminal "${command[@]}")" $'\e[32m'
    lacks "$(on_terminal "${command[@]}" --color never)" $'\e'
    lacks "$(on_terminal env OPENSHELL_COLOR=never "${command[@]}")" $'\e'
    lacks "$(on_terminal env NO_COLOR=1 "${command[@]}")" $'\e'
    contains "$(on_terminal env NO_COLOR= "${command[@]}")" $'\e[32m'
    contains "$(on_terminal env NO_COLOR=1 "${command[@]}" --color always)" $'\e[32m'
    lacks "$(on_terminal env NO_COLOR=1 FORCE_COLOR=1 "${command[@]}")" $'\e'
    lacks "$(on_terminal env TERM=dumb "${command[@]}")" $'\e'
    lacks "$(on_terminal env -u TERM "${command[@]}")" $'\e'
    # Both streams must be terminals for a table.
    lacks "$(on_terminal sh -c "${command[*]} 2>/dev/null")" $'\e'
    lacks "$("${command[@]}" 2>&1)" $'\e'
    contains "$("${command[@]}" --color=always 2>&1)" $'\e[32m'
    contains "$(FORCE_COLOR=1 "${command[@]}" 2>&1)" $'\e[32m'
    # An error follows its own stream. Columns are as wide as their text.
    contains "$(on_terminal sh -c "$PRODUCT/bin/openshell sandbox get nosuch >/dev/null")" $'\e[31m'
    expect "$(FORCE_COLOR=1 "${command[@]}" | sed 's/\x1b\[[0-9]*m//g')" "$("${command[@]}")"
    run -2 openshell --color sometimes sandbox list
    # JSON has none, whatever is asked for.
    lacks "$(openshell --color always sandbox list -o json)" $'\e'
}

@test "help goes through a pager on a terminal, and only there" {
    mkdir bin
    cat >bin/pages <<'PAGER'
#!/bin/sh
echo "LESS=$LESS" >"$ROOT/paged"
cat >>"$ROOT/paged"
PAGER
    chmod 0755 bin/pages
    export ROOT PATH=$ROOT/bin:$PATH TERM=xterm
    unset LESS PAGER
    local words
    for words in --help help 'sandbox --help' sandbox 'sandbox list --help' 'status -h'; do
        rm -f paged
        # shellcheck disable=SC2086 # split on purpose
        on_terminal env PAGER=pages "$PRODUCT/bin/openshell" $words >shown
        expect "$(head -n 1 paged)" LESS=FRX
        grep -q '^usage: openshell' paged
        # shellcheck disable=SC2086 # split on purpose
        expect "$(tail -n +2 paged)" "$(openshell $words)"
        expect "$(cat shown)" ""
    done
    rm paged
    on_terminal env PAGER=pages OPENSHELL_PAGER= "$PRODUCT/bin/openshell" --help >shown
    grep -q '^usage: openshell' shown
    [[ ! -e paged ]]
    on_terminal env 'OPENSHELL_PAGER=tr a-z A-Z | pages' LESS=X "$PRODUCT/bin/openshell" --help >shown
    expect "$(head -n 1 paged)" LESS=X
    grep -q '^USAGE: OPENSHELL' paged
    rm paged
    for words in PAGER=cat PAGER= TERM=dumb PAGER=no-such-pager; do
        on_terminal env "$words" "$PRODUCT/bin/openshell" sandbox --help >shown
        grep -q '^usage: openshell' shown
    done
    PAGER=pages openshell --help >shown
    [[ ! -e paged ]]
    # A pager that ends early is nobody's failure.
    "$PYTHON" - "$PRODUCT/bin/openshell" 3>&- <<'EOF'
import os, pty, sys
os.environ['PAGER'] = 'true'
for words in (['--help'], ['sandbox', 'create', '--help']):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], ['openshell'] + words)
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass
    assert os.waitpid(pid, 0)[1] == 0
EOF
}

@test "a pipe that breaks ends a command quietly" {
    create job
    local words
    for words in --help 'sandbox --help' 'sandbox create --help' 'sandbox list' 'sandbox get job' \
        'sandbox get job -o json' 'gateway list' status 'logs job' 'completions bash'; do
        # Ours to ignore, or the system's to kill: the same.
        # shellcheck disable=SC2086 # split on purpose
        "$PYTHON" - "$PRODUCT/bin/openshell" $words 3>&- <<'EOF'
import os, signal, subprocess, sys
for ignored in (True, False):
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(sys.argv[1:], stdout=writer, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, restore_signals=False,
                             preexec_fn=lambda: signal.signal(signal.SIGPIPE, handler))
    os.close(writer)
    if process.stderr or process.returncode not in (-13, 141):
        sys.exit('%s: %d, %r' % (sys.argv[2:], process.returncode, process.stderr))
EOF
    done
}

@test "errors name the thing and the next command; usage errors of the front-end in JSON" {
    create job
    local words status
    run -1 openshell sandbox get nosuch
    contains "$output" "'nosuch'"
    contains "$output" 'openshell sandbox list'
    run -1 openshell sandbox create --name job --detach
    contains "$output" 'openshell sandbox delete job'
    run -1 openshell -g nosuch sandbox list
    contains "$output" 'openshell gateway list'
    # shellcheck disable=SC2089 # the quotes are meant
    for words in 'sandbox lst' sandbxo 'help nosuch' '--nosuch' 'sandbox --nosuch list' \
        "x\"y\\"$'\e[2J'; do
        status=0
        # shellcheck disable=SC2086,SC2090 # split on purpose
        openshell $words -o json >out 2>err || status=$?
        expect "$status" 2
        expect "$(cat out)" ""
        expect "$(json "d['reason']" <err)" Usage
        expect "$(json "sorted(d)" <err)" '["code", "hint", "message", "reason"]'
        lacks "$(cat err)" $'\e'
    done
    # What follows -- is the program's.
    run -2 openshell sandbxo exec job -- true -o json
    lacks "$output" '{'
}

@test "aliases" {
    create job
    expect "$(openshell sb list --names)" job
    openshell gw list | grep -q openshell
    openshell lg job | grep -q lifecycle
}

@test "-v tells more on stderr, and nothing of it on stdout" {
    create job
    run --separate-stderr -0 openshell -vvv sandbox list --names
    expect "$output" job
    run --separate-stderr -0 openshell sandbox list -v -o json
    json d <<<"$output" >/dev/null
}

# A name service module cannot be loaded into a static program.
@test "whoami of a user whom /etc/passwd does not name" {
    skip_unless_root
    local user=64321
    ! grep -q ":$user:" /etc/passwd || skip "user $user has a name"
    chown -R "$user:$user" "$ROOT"
    command timeout 60 setpriv --reuid "$user" --regid "$user" --clear-groups \
        "$PRODUCT/bin/openshell" whoami 3>&- >me
    contains "$(<me)" "uid:$user"
    gateway_pid
}
