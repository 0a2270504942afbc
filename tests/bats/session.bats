#!/usr/bin/env bats
# What a person does in a first session: make a sandbox, look at it, run something, stop it, start
# it, delete it.

load helper

@test "the first command starts the gateway, and a sandbox lives through a whole session" {
    run -0 openshell sandbox list
    [ -n "$(gateway_pid)" ]

    run -0 openshell sandbox create --name job --detach
    expect "$(phase_of job)" Ready
    expect "$(names)" job

    run -0 openshell sandbox exec job -- sh -c 'echo kept >note; pwd'
    expect "$output" /sandbox
    run -0 openshell sandbox exec job -- cat /sandbox/note
    expect "$output" kept

    run -0 openshell sandbox stop job
    expect "$(phase_of job)" Stopped
    run -0 openshell sandbox start job
    expect "$(phase_of job)" Ready
    run -0 openshell sandbox exec job -- cat note
    expect "$output" kept

    run -0 openshell sandbox delete job
    expect "$(names)" ""
    run -1 openshell sandbox get job
    contains "$output" job
}

@test "get says what a person wants to know" {
    create job --label team=red --env COLOUR=blue
    run -0 openshell sandbox get job
    contains "$output" job
    contains "$output" Ready
    contains "$output" "$(id_of job)"
    contains "$output" team
}

@test "list is a table with a heading, and one sentence when there is nothing" {
    run -0 openshell sandbox list
    expect "${#lines[@]}" 1
    create one
    create two
    run -0 openshell sandbox list
    [[ ${lines[0]} == NAME*CREATED*PHASE* ]]
    expect "${#lines[@]}" 3
    run -0 openshell sandbox list --names
    expect "$(sort <<<"$output" | tr '\n' ' ')" "one two "
    run -0 openshell sandbox list --ids
    contains "$output" "$(id_of one)"
}

@test "a sandbox without a name gets one" {
    openshell sandbox create --detach
    expect "$(openshell sandbox list -o json | json "len(d['sandboxes'])")" 1
    [[ $(names) =~ ^[a-z0-9]+(-[a-z0-9]+)+$ ]]
}

@test "what was written stays through stop and start, where it is documented to stay" {
    local place
    create job
    for place in /sandbox /tmp /var/tmp /run; do
        openshell sandbox exec job -- sh -c "echo $place >$place/kept"
    done
    openshell sandbox stop job
    openshell sandbox start job
    for place in /sandbox /tmp /var/tmp /run; do
        expect "$(openshell sandbox exec job -- cat "$place/kept")" "$place"
    done
}

@test "a stopped sandbox has no processes; after its start the main command runs again" {
    local before gateway
    openshell gateway start
    gateway=$(own_processes) # and its spawner's
    create job -- sh -c 'echo started >>/sandbox/count; exec sleep 1000'
    before=$(own_processes | grep -vxF "$gateway")
    [[ -n $before ]]
    openshell sandbox stop job
    wait_for 5 none_alive "$before"
    openshell sandbox start job
    wait_for 5 eval '[ "$(openshell sandbox exec job -- grep -c . /sandbox/count)" = 2 ]'
}

@test "stop and start of what is stopped or running already succeed" {
    create job
    openshell sandbox start job
    expect "$(phase_of job)" Ready
    openshell sandbox stop job
    openshell sandbox stop job
    expect "$(phase_of job)" Stopped
}

@test "stop is quick when the processes obey, and kills those that do not" {
    local start
    create meek -- sleep 1000
    create stubborn -- sh -c 'trap "" TERM; while :; do sleep 1; done'
    start=$(milliseconds)
    openshell sandbox stop meek
    (($(milliseconds) - start < 2000))
    openshell sandbox stop stubborn
    expect "$(phase_of stubborn)" Stopped
    wait_for 2 eval '[ "$(own_processes | wc -l)" = "$(tree_of "$(gateway_pid)" | wc -l)" ]'
}

@test "delete of a name that is not there succeeds and says so" {
    run -0 openshell sandbox delete nosuch
    contains "$output" nosuch
}

@test "delete takes several names; nothing of them stays" {
    local ids
    create one
    create two
    openshell sandbox stop two
    ids="$(id_of one) $(id_of two)"
    run -0 openshell sandbox delete one two
    expect "$(names)" ""
    for id in $ids; do
        wait_for 5 test ! -e "$STATE/sandboxes/$id"
        wait_for 5 test ! -e "$RUN/sandboxes/$id"
    done
    wait_for 10 eval '[ -z "$(ls -A "$STATE/trash" 2>/dev/null)" ]'
    # The name is free again.
    create one
}

@test "unknown sandboxes: get, exec, stop, start say what is wrong and what to do" {
    local verb
    for verb in get stop start; do
        run -1 openshell sandbox "$verb" nosuch
        contains "$output" nosuch
        contains "$output" "openshell sandbox list"
    done
    run -1 openshell sandbox exec nosuch -- true
    contains "$output" nosuch
    contains "$output" "openshell sandbox list"
}

@test "exec in a stopped sandbox is refused with the reason and the next command" {
    create job
    openshell sandbox stop job
    run -1 --separate-stderr openshell sandbox exec job -- true
    expect "$output" ""
    contains "$stderr" job
    contains "$stderr" stopped
    contains "$stderr" "openshell sandbox start job"
}

@test "one script can tell a failure of the tool from the command's own 1" {
    create job
    run -1 openshell sandbox exec job -- false
    run -99 openshell sandbox exec --own-exit-code 99 nosuch -- false
    run -1 openshell sandbox exec --own-exit-code 99 job -- false
}

@test "status works without a gateway and does not start one" {
    run -0 openshell status
    [ -z "$(gateway_pid)" ]
    run -0 openshell gateway list
    [ -z "$(gateway_pid)" ]
    openshell sandbox list
    run -0 openshell status
    contains "$output" openshell
    expect "$(openshell status -o json | json "d['status']")" connected
}

@test "gateway start, status, stop" {
    local pid
    run -0 openshell gateway start
    pid=$(gateway_pid)
    run -0 openshell gateway start
    expect "$(gateway_pid)" "$pid"
    run -0 openshell gateway status
    contains "$output" "$pid"
    create job
    run -0 openshell gateway stop
    [ -z "$(gateway_pid)" ]
    # The sandbox lives on, and the next command finds it.
    expect "$(openshell sandbox exec job -- echo here)" here
    run -0 openshell gateway stop --stop-sandboxes
    [ -z "$(gateway_pid)" ]
    [ -z "$(in_our_mounts)" ]
    expect "$(phase_of job)" Stopped
    openshell gateway stop
    run -0 openshell gateway stop
}

@test "stop and delete end what runs in an exec, and its client does not succeed" {
    local verb
    for verb in stop delete; do
        create "job$verb"
        openshell sandbox exec "job$verb" -- sleep "${NAP}1" >"out" 2>"err" &
        wait_for 5 eval '[ -n "$(sleepers "${NAP}1")" ]'
        openshell sandbox "$verb" "job$verb"
        local status=0
        wait $! || status=$?
        ((status != 0))
        expect "$(sleepers "${NAP}1")" ""
    done
}

@test "create and delete of one name at the same time leave no half sandbox" {
    local i
    for i in $(seq 10); do
        openshell sandbox create --name "race$i" --detach >/dev/null 2>&1 &
        sleep "0.0$((i * 3 % 10))"
        openshell sandbox delete "race$i" >/dev/null 2>&1 || true
        wait $! || true
        openshell sandbox delete "race$i" >/dev/null
    done
    wait_for 5 eval '[ -z "$(names)" ]'
    wait_for 5 eval '[ -z "$(in_our_mounts)" ]'
    wait_for 5 eval '[ -z "$(ls -A "$RUN/sandboxes")" ]'
}
