#!/usr/bin/env bats
# How the gateway starts, what it refuses to start on, and who may see its files.

load helper

# Gateways of this test that live.
gateways()
{
    local process
    for process in /proc/[0-9]*; do
        if [[ $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") == *openshell-gateway* ]] &&
            { grep -qsz "^OPENSHELL_RUN_DIR=$RUN\$" "$process/environ" ||
                [[ ${process#/proc/} == "$(gateway_pid)" ]]; }; then
            echo "${process#/proc/}"
        fi
    done
}

@test "first commands at once start one gateway, and all of them work" {
    local i pids=()
    for i in $(seq 12); do
        openshell sandbox list >"out.$i" 2>&1 &
        pids[i]=$!
    done
    for i in $(seq 12); do
        wait "${pids[i]}" || {
            cat "out.$i"
            false
        }
    done
    expect "$(gateways | wc -l)" 1
}

@test "two first creates with one name, without a gateway: one wins" {
    local status1=0 status2=0 first second
    openshell sandbox create --name same --detach >first 2>&1 &
    first=$!
    openshell sandbox create --name same --detach >second 2>&1 &
    second=$!
    wait "$first" || status1=$?
    wait "$second" || status2=$?
    expect "$((status1 + status2))" 1
    expect "$(gateways | wc -l)" 1
    expect "$(names)" same
}

@test "a gateway that is started twice by hand runs once" {
    openshell gateway start
    local pid
    pid=$(gateway_pid)
    run timeout 10 "$OPENSHELL_EXEC_PATH/openshell-gateway" 3>&-
    ((status != 0 && status != 124))
    expect "$(gateway_pid)" "$pid"
    expect "$(gateways | wc -l)" 1
}

@test "a command that starts the gateway gives all its descriptors back" {
    local start
    start=$(milliseconds)
    # cat ends when the last holder of the pipe is gone: a daemon that keeps it would hold it.
    (
        exec 9> >(cat >"$ROOT/ended" && echo end >>"$ROOT/ended")
        "$PRODUCT/bin/openshell" sandbox create --name job --detach
    ) >/dev/null 2>&1 3>&1
    wait_for 3 grep -q end "$ROOT/ended"
    (($(milliseconds) - start < 5000))
    expect "$(openshell sandbox exec job -- sh -c 'ls /proc/self/fd | wc -l')" 4
}

@test "a lock file that names another process, or nonsense, does not stop a start" {
    local content bystander
    sleep 300 3>&- &
    bystander=$!
    for content in "$bystander $(start_time "$bystander")" "$bystander 1" '' garbage '-1 0' '1 0' '0 0'; do
        openshell sandbox list
        kill -KILL "$(gateway_pid)"
        wait_for 2 eval '[ -z "$(gateway_pid)" ]'
        printf '%s\n' "$content" >"$RUN/gateway.lock"
        openshell sandbox list
        kill -0 "$bystander"
        openshell gateway stop
        kill -0 "$bystander"
    done
    kill "$bystander"
}

@test "a left-over socket does not stop a start" {
    openshell gateway start
    kill -KILL "$(gateway_pid)"
    wait_for 2 eval '[ -z "$(gateway_pid)" ]'
    [ -S "$RUN/gateway.sock" ]
    run -0 openshell sandbox list
}

@test "a database of a newer version is refused, named, and left as it is" {
    local sum
    openshell sandbox create --name job --detach -- true || true
    openshell gateway stop
    "$PYTHON" - "$STATE/gateway/openshell.db" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('PRAGMA user_version = 99999')
tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
for table in tables:
    if 'schema' in table or 'migration' in table:
        for column in [r[1] for r in db.execute('PRAGMA table_info(%s)' % table)]:
            if 'version' in column:
                db.execute('UPDATE %s SET %s = 99999' % (table, column))
db.commit()
EOF
    sum=$(sha256sum <"$STATE/gateway/openshell.db")
    run -1 openshell sandbox list
    contains "$output" openshell.db
    contains "$output" newer
    expect "$(sha256sum <"$STATE/gateway/openshell.db")" "$sum"
}

@test "a corrupt database is named, and not written over" {
    openshell sandbox create --name job --detach
    openshell sandbox delete job
    openshell gateway stop
    printf 'this is not a database, it is a text that somebody wrote here' |
        dd of="$STATE/gateway/openshell.db" conv=notrunc status=none
    rm -f "$STATE"/gateway/openshell.db-*
    local sum
    sum=$(sha256sum <"$STATE/gateway/openshell.db")
    run -1 openshell sandbox list
    contains "$output" openshell.db
    expect "$(sha256sum <"$STATE/gateway/openshell.db")" "$sum"
    # And the reason can be read without the command, too.
    grep -q openshell.db "$STATE/gateway/gateway.log"
}

@test "an empty database file is a new database" {
    (umask 077 && mkdir -p "$STATE/gateway")
    : >"$STATE/gateway/openshell.db"
    run -0 openshell sandbox list
}

@test "a state directory that cannot be written is named" {
    ((EUID != 0)) || skip "for an ordinary user alone"
    chmod 0500 "$XDG_STATE_HOME"
    run -1 openshell sandbox list
    contains "$output" "$XDG_STATE_HOME"
    chmod 0700 "$XDG_STATE_HOME"
    run -0 openshell sandbox list
}

@test "a full disk is reported in words, and the gateway goes on afterwards" {
    skip_unless_root
    run unshare -m bash -c '
        mount -t tmpfs -o size=6m none "$XDG_STATE_HOME" || exit 77
        "$0" sandbox list || exit 78
        head -c 100m /dev/zero >"$XDG_STATE_HOME/filler" 2>/dev/null
        "$0" sandbox create --name x --detach; echo "create: $?"
        rm "$XDG_STATE_HOME/filler"
        "$0" sandbox list; echo "list: $?"
        "$0" gateway stop' "$PRODUCT/bin/openshell" 3>&-
    [[ $status != 77 ]] || skip "no tmpfs can be mounted"
    contains "$output" "create: 1"
    contains "$output" "list: 0"
}

@test "a run-time directory that others can write or that is a link is refused or made private" {
    mkdir -m 0777 "$RUN"
    chmod 0777 "$RUN"
    run openshell sandbox list
    if ((status == 0)); then
        expect "$(stat -c %a "$RUN")" 700
    else
        contains "$output" "$RUN"
    fi
    openshell gateway stop || true
    rm -rf "$RUN"
    mkdir -m 0700 "$ROOT/elsewhere"
    ln -s "$ROOT/elsewhere" "$RUN"
    run -1 openshell sandbox list
    contains "$output" "$RUN"
    expect "$(ls -A "$ROOT/elsewhere")" ""
    rm "$RUN"
}

@test "a run-time directory of somebody else is refused" {
    skip_unless_root
    mkdir -m 0700 "$RUN"
    chown games "$RUN"
    run -1 openshell sandbox list
    contains "$output" "$RUN"
    chown root "$RUN"
}

@test "with umask 000, directories are 0700 and files 0600" {
    local wrong
    umask 000
    openshell sandbox create --name job --detach --env TOKEN=secret
    openshell sandbox exec job -- true
    openshell sandbox list
    # What is below a sandbox's root, and the cached skeleton of /etc, is the sandboxes' own.
    wrong=$(find "$RUN" "$STATE" "$CONFIG" \
        \( -path "$STATE/sandboxes/*/root/*" -o -path "$STATE/cache/*" \) -prune -o \
        \( -type d -perm /077 -o -type f -perm /177 -o -type s -perm /077 \) -printf '%m %p\n')
    expect "$wrong" ""
    umask 022
}

@test "secrets are in no command line, environment or log" {
    local pid text
    openshell sandbox create --name job --detach --env PASSWORD=hunter2-is-secret
    openshell sandbox exec --env MORE=hunter3-is-secret job -- true
    while read -r pid _; do
        # What runs in the sandbox has the variables that it was given.
        if grep -qs "$ROOT/" "/proc/$pid/mountinfo"; then
            continue
        fi
        for file in cmdline environ; do
            text=$(tr '\0' '\n' <"/proc/$pid/$file" 2>/dev/null) || continue
            lacks "$text" "eyJ"
            lacks "$text" "PRIVATE KEY"
            lacks "$text" hunter
        done
    done < <(own_processes)
    run grep -rE 'eyJ[A-Za-z0-9_-]{10}|PRIVATE KEY|hunter[23]' "$STATE"/gateway/gateway.log \
        "$STATE"/sandboxes/*/log
    expect "$output" ""
}

@test "another user cannot talk to the gateway, root can" {
    skip_unless_root
    local status=0
    openshell gateway start
    chmod 0711 "$ROOT" "$XDG_RUNTIME_DIR" "$RUN"
    chmod 0777 "$RUN/gateway.sock"
    setpriv --reuid games --regid games --clear-groups "$PYTHON" - "$RUN/gateway.sock" 3>&- <<'EOF' || status=$?
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect(sys.argv[1])
try:
    s.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0')
    sys.exit(9 if s.recv(100) else 0)
except (BrokenPipeError, ConnectionResetError):
    sys.exit(0)
EOF
    expect "$status" 0
    run -0 openshell sandbox list
}

@test "the client's configuration is written, and an own choice in it stays" {
    openshell sandbox list
    expect "$(json "d['name']" <"$CONFIG/gateways/openshell/metadata.json")" openshell
    expect "$(json "d['gateway_endpoint']" <"$CONFIG/gateways/openshell/metadata.json")" \
        "unix:$RUN/gateway.sock"
    expect "$(tr -d '[:space:]' <"$CONFIG/active_gateway")" openshell
    openshell gateway stop
    echo elsewhere >"$CONFIG/active_gateway"
    openshell --gateway openshell sandbox list
    expect "$(<"$CONFIG/active_gateway")" elsewhere
}

# The process that forks supervisors and runtimes for the gateway.
spawner_pid()
{
    local gateway process
    gateway=$(gateway_pid)
    for process in /proc/[0-9]*; do
        if [[ $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") == openshell-daemons\ spawner* ]] &&
            [[ $(awk '/^PPid:/ { print $2 }' "$process/status" 2>/dev/null) == "$gateway" ]]; then
            echo "${process#/proc/}"
        fi
    done
}

@test "a spawner that is killed is replaced, and its sandboxes go on" {
    local first
    create before
    first=$(spawner_pid)
    kill -KILL "$first"
    create after
    expect "$(openshell sandbox exec before -- echo here)" here
    expect "$(openshell sandbox exec after -- echo here)" here
    [[ $(spawner_pid) != "$first" ]]
}

@test "the spawner ends with its gateway, and what it started goes on" {
    local spawner
    create one
    spawner=$(spawner_pid)
    kill -KILL "$(gateway_pid)"
    wait_for 2 eval "! kill -0 $spawner 2>/dev/null"
    expect "$(openshell sandbox exec one -- echo here)" here
}

@test "supervisor and runtime go by their own names" {
    local id
    create one
    id=$(id_of one)
    expect "$(tr -d '\0' <"/proc/$(supervisor_pid "$id")/cmdline")" openshell-supervisor
    expect "$(tr -d '\0' <"/proc/$(runtime_pid "$id")/cmdline")" openshell-sandbox
    expect "$(<"/proc/$(supervisor_pid "$id")/comm")" openshell-super
}
