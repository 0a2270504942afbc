# shellcheck shell=bash
# What the end-to-end tests have in common. Each test has a home, configuration, state and run-time
# directory of its own below $ROOT, so its commands start a gateway of their own; teardown ends what
# the test started, by process id, and fails when something stays.
#
# OPENSHELL_TEST_PRODUCT   where the product is installed (default: build/installed)
# OPENSHELL_TEST_SCRATCH   where the tests may make directories (default: $TMPDIR or /tmp)

bats_require_minimum_version 1.5.0

PRODUCT=${OPENSHELL_TEST_PRODUCT:-$BATS_TEST_DIRNAME/../../build/installed}
PYTHON=/usr/bin/python3

setup()
{
    make_environment
}

teardown()
{
    leave_environment
}

make_environment()
{
    local variable
    for variable in "${!OPENSHELL_@}"; do
        [[ $variable == OPENSHELL_TEST_* ]] || unset "$variable"
    done
    unset NO_COLOR FORCE_COLOR
    # shellcheck disable=SC2034 # for the tests
    NAP=$((BASHPID + 1000000))
    ROOT=$(mktemp -d "${OPENSHELL_TEST_SCRATCH:-${TMPDIR:-/tmp}}/os.XXXXXX")
    export HOME=$ROOT/home XDG_CONFIG_HOME=$ROOT/config XDG_STATE_HOME=$ROOT/state
    export XDG_CACHE_HOME=$ROOT/cache XDG_RUNTIME_DIR=$ROOT/run
    export OPENSHELL_RUN_DIR=$ROOT/run/openshell
    export OPENSHELL_EXEC_PATH=$PRODUCT/libexec/openshell
    export OPENSHELL_MAN_PATH=$PRODUCT/share/man
    export PATH=$PRODUCT/bin:$PATH
    mkdir -m 0700 "$HOME" "$XDG_CONFIG_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" "$XDG_RUNTIME_DIR"
    RUN=$OPENSHELL_RUN_DIR
    STATE=$XDG_STATE_HOME/openshell
    # shellcheck disable=SC2034 # for the tests
    CONFIG=$XDG_CONFIG_HOME/openshell
    cd "$ROOT" || return 1
}

# The command, with a time limit: a test that would wait for ever fails instead. bats' own
# descriptor stays out of it, except in the test that is about descriptors.
openshell()
{
    command timeout --kill-after=5 "${LIMIT:-60}" "$PRODUCT/bin/openshell" "$@" 3>&-
}

# --- processes ------------------------------------------------------------------------------

# The process id in a lock file ("PID START_TIME" in its first line), if that process lives.
locked_pid()
{
    local pid start
    read -r pid start <"$1" 2>/dev/null || return 1
    [[ -n $pid && $(start_time "$pid") == "$start" ]] && echo "$pid"
}

# When a process started (field 22 of its stat file), nothing if there is none. The state of a
# zombie counts as gone.
start_time()
{
    local stat
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    stat=${stat##*) }
    [[ $stat == Z* ]] && return 1
    # shellcheck disable=SC2086 # split on purpose
    set -- $stat
    echo "${20}"
}

gateway_pid()
{
    locked_pid "$RUN/gateway.lock"
}

id_of()
{
    openshell sandbox get "$1" -o json | json "d['id']"
}

supervisor_pid()
{
    locked_pid "$RUN/sandboxes/$1/supervisor.lock"
}

runtime_pid()
{
    locked_pid "$RUN/sandboxes/$1/runtime.lock"
}

# All processes below those named, and themselves: "PID START_TIME" lines.
tree_of()
{
    "$PYTHON" - "$@" <<'EOF'
import os, sys
parent, start = {}, {}
for entry in os.listdir('/proc'):
    if not entry.isdigit():
        continue
    try:
        with open('/proc/%s/stat' % entry) as f:
            fields = f.read().rpartition(') ')[2].split()
    except OSError:
        continue
    if fields[0] == 'Z':
        continue
    parent[entry], start[entry] = fields[1], fields[19]
wanted = set(sys.argv[1:]) & set(parent)
while True:
    more = {p for p, q in parent.items() if q in wanted} - wanted
    if not more:
        break
    wanted |= more
for pid in sorted(wanted, key=int):
    print(pid, start[pid])
EOF
}

# The processes of this test: gateway, supervisors, runtimes, and everything below them.
own_processes()
{
    local lock roots=()
    for lock in "$RUN"/gateway.lock "$RUN"/sandboxes/*/*.lock; do
        [[ -e $lock ]] && roots+=("$(locked_pid "$lock")")
    done
    if ((${#roots[@]})); then
        tree_of "${roots[@]}"
    fi
}

# Reads "PID START_TIME" lines; prints those that still live.
still_alive()
{
    local pid start
    while read -r pid start; do
        if [[ -n $pid && $(start_time "$pid") == "$start" ]]; then
            echo "$pid $start"
        fi
    done
}

none_alive()
{
    [[ -z $(still_alive <<<"$1") ]]
}

describe()
{
    local pid start
    while read -r pid start; do
        [[ -n $pid ]] && printf '%s\n' "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline" | head -c 150)"
    done
}

# Processes whose mounts come from this test's directory: whatever lives in one of its sandboxes.
in_our_mounts()
{
    grep -ls "$ROOT/" /proc/[0-9]*/mountinfo 2>/dev/null | cut -d / -f 3
}

# Host process ids of what runs "sleep PATTERN". A test makes its numbers from $NAP, which no
# other test that runs at the same time has.
sleepers()
{
    pgrep -f "^sleep $1\$" || true
}

# --- waiting --------------------------------------------------------------------------------

milliseconds()
{
    echo $(($(date +%s%N) / 1000000))
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails with what it was waiting for.
wait_for()
{
    local limit=$1 end
    shift
    end=$(($(milliseconds) + limit * 1000))
    until "$@"; do
        if (($(milliseconds) >= end)); then
            echo "not within $limit s: $*"
            return 1
        fi
        sleep 0.02
    done
}

# --- words and JSON -------------------------------------------------------------------------

# json EXPRESSION: evaluates it on the JSON document on stdin, which is called d.
json()
{
    "$PYTHON" -c '
import json, sys
d = json.load(sys.stdin)
r = eval(sys.argv[1])
print(r if isinstance(r, str) else json.dumps(r))' "$1"
}

phase_of()
{
    openshell sandbox get "$1" -o json | json "d['phase']"
}

reason_of()
{
    openshell sandbox get "$1" -o json |
        json "next((c['reason'] for c in d['conditions'] if c['type'] == 'Ready'), '')"
}

phase_is()
{
    [[ $(phase_of "$1") == "$2" ]]
}

names()
{
    openshell sandbox list -o json | json "' '.join(sorted(s['name'] for s in d['sandboxes']))"
}

# expect ACTUAL EXPECTED
expect()
{
    if [[ $1 != "$2" ]]; then
        printf 'expected: %q\nbut got:  %q\n' "$2" "$1"
        return 1
    fi
}

contains()
{
    if [[ $1 != *"$2"* ]]; then
        printf 'expected to find: %q\nin: %q\n' "$2" "$1"
        return 1
    fi
}

lacks()
{
    if [[ $1 == *"$2"* ]]; then
        printf 'did not expect: %q\nin: %q\n' "$2" "$1"
        return 1
    fi
}

# create NAME [options...] [-- command...]: a sandbox that is there and runs.
create()
{
    local name=$1
    shift
    openshell sandbox create --name "$name" --detach "$@" >/dev/null
}

# interrupted MILLISECONDS SIGNAL COMMAND...: runs the command as a terminal would, sends it the
# signal after that time, prints its exit status (128+N for a death by signal N).
interrupted()
{
    "$PYTHON" - "$@" 3>&- <<'EOF'
import subprocess, sys, signal, time
for s in (signal.SIGINT, signal.SIGQUIT):
    signal.signal(s, signal.SIG_DFL)
process = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
time.sleep(int(sys.argv[1]) / 1000)
process.send_signal(getattr(signal, 'SIG' + sys.argv[2]))
status = process.wait(60)
print(status if status >= 0 else 128 - status)
EOF
}

skip_unless_root()
{
    ((EUID == 0)) || skip "for root alone"
}

# --- the end of a test ----------------------------------------------------------------------

# Ends the gateway and the sandboxes of this test, and looks for what stays: a process, a mount,
# a control group, a file.
leave_environment()
{
    local processes ids left status=0 pid start
    [[ -n ${ROOT:-} ]] || return 0
    cd /
    processes=$(own_processes)
    ids=$(find "$RUN/sandboxes" "$STATE/sandboxes" -mindepth 1 -maxdepth 1 -type d \
        -printf '%f\n' 2>/dev/null | sort -u)
    pid=$(gateway_pid) && kill -TERM "$pid" 2>/dev/null
    for pid in "$RUN"/sandboxes/*/runtime.lock; do
        [[ -e $pid ]] && pid=$(locked_pid "$pid") && kill -TERM "$pid" 2>/dev/null
    done
    if ! wait_for 8 none_alive "$processes" >/dev/null; then
        left=$(still_alive <<<"$processes")
        echo "these processes stay:"
        describe <<<"$left"
        while read -r pid start; do
            kill -KILL "$pid" 2>/dev/null
        done <<<"$left"
        wait_for 5 none_alive "$processes"
        status=1
    fi
    left=$(in_our_mounts)
    if [[ -n $left ]]; then
        echo "these processes stay in a sandbox:"
        describe <<<"$left"
        for pid in $left; do
            kill -KILL "$pid" 2>/dev/null
        done
        status=1
    fi
    if grep "$ROOT/" /proc/self/mountinfo; then
        echo "these mounts stay"
        status=1
    fi
    for pid in $ids; do
        if find /sys/fs/cgroup -type d -name "*$pid*" 2>/dev/null | grep .; then
            echo "these control groups stay"
            status=1
        fi
    done
    if ((status)) || [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
        show_logs
    fi
    chmod -R u+rwX "$ROOT" 2>/dev/null
    rm -rf "$ROOT" || status=1
    return $status
}

# For a test that failed: the ends of the logs.
show_logs()
{
    local log
    for log in "$STATE"/gateway/gateway.log "$STATE"/sandboxes/*/log/*.log; do
        if [[ -s $log ]]; then
            echo "--- ${log#"$ROOT"/}"
            tail -n 15 "$log" | cat -v
        fi
    done
}
