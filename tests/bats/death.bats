#!/usr/bin/env bats
# Parts that die: the supervisor, the runtime, the gateway, all of them. What is in a sandbox never
# outlives the parts that hold it, and the records always say what happened.

load helper

# The processes of a sandbox: its runtime and all below it, and its supervisor.
processes_of()
{
    tree_of "$(runtime_pid "$1")" "$(supervisor_pid "$1")"
}

setup()
{
    make_environment
    create job -- sleep "${NAP}1"
    ID=$(id_of job)
    PROCESSES=$(processes_of "$ID")
    (($(wc -l <<<"$PROCESSES") >= 4))
}

teardown()
{
    if [[ -n ${PROCESSES:-} ]] && ! none_alive "$PROCESSES"; then
        # Lock files of dead parents say nothing: these are named here.
        still_alive <<<"$PROCESSES" | while read -r pid _; do kill -TERM "$pid"; done
        wait_for 3 none_alive "$PROCESSES" ||
            still_alive <<<"$PROCESSES" | while read -r pid _; do kill -KILL "$pid"; done
    fi
    leave_environment
}

@test "kill -9 of the supervisor: everything of the sandbox ends, Error with SupervisorLost" {
    kill -KILL "$(supervisor_pid "$ID")"
    wait_for 3 none_alive "$PROCESSES"
    wait_for 3 phase_is job Error
    expect "$(reason_of job)" SupervisorLost
    run -1 openshell sandbox exec job -- true
    contains "$output" job
    # The way out: start makes it run again.
    openshell sandbox start job
    expect "$(openshell sandbox exec job -- echo again)" again
    PROCESSES=$(processes_of "$ID")
}

@test "kill -9 of the runtime: everything of the sandbox ends, Error with RuntimeLost" {
    kill -KILL "$(runtime_pid "$ID")"
    wait_for 3 none_alive "$PROCESSES"
    wait_for 3 phase_is job Error
    expect "$(reason_of job)" RuntimeLost
    openshell sandbox start job
    expect "$(openshell sandbox exec job -- echo again)" again
    PROCESSES=$(processes_of "$ID")
}

@test "kill -9 of the sandbox's first process: the sandbox ends, no code 0 is reported" {
    local maker
    # The child of the runtime is the first process of the process namespace.
    maker=$(pgrep -P "$(runtime_pid "$ID")" | head -n 1)
    kill -KILL "$maker"
    wait_for 5 phase_is job Error
    wait_for 3 eval '[ -z "$(sleepers "${NAP}1")" ]'
    lacks "$(openshell sandbox get job -o json | json "d.get('exit_code')")" 0
    openshell sandbox delete job
}

@test "a sandbox whose supervisor was killed can be deleted; nothing stays" {
    kill -KILL "$(supervisor_pid "$ID")"
    openshell sandbox delete job
    expect "$(names)" ""
    wait_for 3 none_alive "$PROCESSES"
    wait_for 5 test ! -e "$STATE/sandboxes/$ID"
}

@test "an exec whose supervisor is killed fails, with no code 0" {
    openshell sandbox exec job -- sleep "${NAP}2" &
    wait_for 5 eval '[ -n "$(sleepers "${NAP}2")" ]'
    kill -KILL "$(supervisor_pid "$ID")"
    local status=0
    wait $! || status=$?
    [[ $status == 1 || $status == 255 ]]
    wait_for 3 eval '[ -z "$(sleepers "${NAP}2")" ]'
}

@test "an exec whose reaper is killed fails, with no code 0" {
    local command reaper
    openshell sandbox exec job -- sleep "${NAP}3" >out 2>err &
    wait_for 5 eval '[ -n "$(sleepers "${NAP}3")" ]'
    command=$(sleepers "${NAP}3")
    reaper=$(awk '/^PPid:/ { print $2 }' "/proc/$command/status")
    kill -KILL "$reaper"
    local status=0
    wait $! || status=$?
    [[ $status == 1 || $status == 255 ]]
    grep -q reaper err
    wait_for 5 eval '[ -z "$(sleepers "${NAP}3")" ]'
}

@test "kill -9 of the gateway: the sandbox runs on, the next exec works within a second" {
    local gateway start
    gateway=$(gateway_pid)
    kill -KILL "$gateway"
    wait_for 2 eval '[ -z "$(gateway_pid)" ]'
    none_alive "$PROCESSES" && false
    start=$(milliseconds)
    expect "$(openshell sandbox exec job -- echo here)" here
    echo "# exec after kill -9 of the gateway: $(($(milliseconds) - start)) ms" >&3
    (($(milliseconds) - start < 1000))
    # The same processes, all of them.
    expect "$(still_alive <<<"$PROCESSES")" "$PROCESSES"
    expect "$(phase_of job)" Ready
}

@test "gateway stop and start: the sandbox runs on, exec works within a second" {
    local start
    openshell gateway stop
    expect "$(still_alive <<<"$PROCESSES")" "$PROCESSES"
    openshell gateway start
    start=$(milliseconds)
    expect "$(openshell sandbox exec job -- echo here)" here
    (($(milliseconds) - start < 1000))
    expect "$(still_alive <<<"$PROCESSES")" "$PROCESSES"
}

@test "ten gateways one after the other: the sandbox is never lost" {
    for _ in $(seq 10); do
        kill -KILL "$(gateway_pid)"
        wait_for 2 eval '[ -z "$(gateway_pid)" ]'
        expect "$(openshell sandbox exec job -- echo here)" here
    done
    expect "$(phase_of job)" Ready
    expect "$(still_alive <<<"$PROCESSES")" "$PROCESSES"
}

@test "a main command that ends while there is no gateway is recorded by the next one" {
    create other -- sh -c 'sleep "$0"; exit 6' 1.5
    kill -KILL "$(gateway_pid)"
    wait_for 5 eval '! in_sandbox_runs "sleep 1.5"'
    wait_for 5 phase_is other Error
    expect "$(openshell sandbox get other -o json | json "d['exit_code']")" 6
    expect "$(reason_of other)" MainProcessFailed
}

# in_sandbox_runs WORDS: whether a process of this test's sandboxes has that command line.
in_sandbox_runs()
{
    local pid
    for pid in $(in_our_mounts); do
        [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == "$1 " ]] && return 0
    done
    return 1
}

@test "a supervisor killed while there is no gateway is recorded by the next one" {
    openshell gateway stop
    kill -KILL "$(supervisor_pid "$ID")"
    wait_for 3 none_alive "$PROCESSES"
    wait_for 5 phase_is job Error
    expect "$(reason_of job)" SupervisorLost
}

@test "everything killed at once, as by a reboot: records stay, each sandbox starts again" {
    local pid
    create second
    openshell sandbox exec job -- sh -c 'echo mine >/sandbox/file'
    PROCESSES=$(own_processes)
    while read -r pid _; do
        kill -KILL "$pid" 2>/dev/null || true
    done <<<"$PROCESSES"
    wait_for 3 none_alive "$PROCESSES"
    expect "$(names)" "job second"
    wait_for 5 phase_is job Error
    openshell sandbox start job
    expect "$(openshell sandbox exec job -- cat /sandbox/file)" mine
    openshell sandbox delete job second
    expect "$(names)" ""
}

@test "a gateway killed while it deletes: the next one finishes, no row stays in Deleting" {
    openshell sandbox delete job &
    sleep 0.01
    kill -KILL "$(gateway_pid)"
    wait $! || true
    openshell sandbox delete job
    wait_for 10 eval '[ -z "$(names)" ]'
    wait_for 10 none_alive "$PROCESSES"
    create job
}

@test "a gateway killed while it creates or stops: the sandbox can be stopped, started, deleted" {
    local verb delay
    for delay in 0.003 0.01 0.02; do
        openshell sandbox create --name cut --detach >/dev/null 2>&1 &
        sleep "$delay"
        kill -KILL "$(gateway_pid)"
        wait $! || true
        wait_for 10 eval 'openshell sandbox delete cut'
        wait_for 10 eval '[ "$(names)" = job ]'
    done
    openshell sandbox stop job &
    sleep 0.01
    kill -KILL "$(gateway_pid)"
    wait $! || true
    wait_for 10 openshell sandbox stop job
    wait_for 10 phase_is job Stopped
    for verb in start stop delete; do
        openshell sandbox "$verb" job
    done
}
