#!/usr/bin/env bats
# Making a sandbox: the main command, its end, its environment, what is refused, interruption.

load helper

@test "a main command that ends with 0 makes the sandbox Completed and create succeed" {
    run -0 openshell sandbox create --name ended -- true
    expect "$(phase_of ended)" Completed
    expect "$(openshell sandbox get ended -o json | json "d['exit_code']")" 0
    expect "$(reason_of ended)" MainProcessCompleted
    expect "$(openshell sandbox exec ended -- echo works)" works
}

@test "a main command that fails: create ends with its code, the sandbox says MainProcessFailed" {
    local code
    for code in 1 3 255; do
        run "-$code" openshell sandbox create --name "code$code" -- sh -c "exit $code"
        expect "$(phase_of "code$code")" Error
        expect "$(reason_of "code$code")" MainProcessFailed
        expect "$(openshell sandbox get "code$code" -o json | json "d['exit_code']")" "$code"
    done
    expect "$(openshell sandbox exec code3 -- echo works)" works
}

@test "a main command killed by a signal: 128 and the number" {
    run -137 openshell sandbox create --name killed -- sh -c 'kill -9 $$'
    expect "$(openshell sandbox get killed -o json | json "d['exit_code']")" 137
}

@test "a main command that does not exist: a failure that names it" {
    run -127 openshell sandbox create --name m -- no-such-program-anywhere
    contains "$output" no-such-program-anywhere
    run -0 openshell sandbox delete m
}

@test "a Completed and a failed sandbox can be started again and deleted" {
    openshell sandbox create --name m -- sh -c 'echo x >>/sandbox/runs'
    openshell sandbox start m
    wait_for 5 phase_is m Completed
    expect "$(openshell sandbox exec m -- grep -c x /sandbox/runs)" 2
    openshell sandbox stop m
    openshell sandbox delete m
    run -3 openshell sandbox create --name f -- sh -c 'exit 3'
    # Its main fails again, so start says so.
    run openshell sandbox start f
    wait_for 5 phase_is f Error
    openshell sandbox delete f
    expect "$(names)" ""
}

@test "--no-keep waits for the end, gives the code and leaves nothing" {
    run -0 openshell sandbox create --name gone --no-keep -- true
    expect "$(names)" ""
    run -7 openshell sandbox create --name gone --no-keep -- sh -c 'sleep 0.2; exit 7'
    expect "$(names)" ""
    [ -z "$(in_our_mounts)" ]
    wait_for 10 eval '[ -z "$(ls -A "$STATE/sandboxes" "$STATE/trash" 2>/dev/null | grep -v :)" ]'
}

@test "--no-keep --detach: the gateway deletes the sandbox when its main command ended" {
    openshell sandbox create --name gone --no-keep --detach -- sleep 0.3
    wait_for 10 eval '[ -z "$(names)" ]'
}

@test "--no-keep cannot be joined with -o" {
    run -2 openshell sandbox create --no-keep -o json -- true
}

@test "variables given at create are in the main command and in an exec" {
    create job --env 'K=a value' --env EMPTY= -- \
        sh -c 'printf "%s|%s" "$K" "${EMPTY-unset}" >/sandbox/seen; exec sleep 1000'
    wait_for 5 openshell sandbox exec job -- test -s /sandbox/seen
    expect "$(openshell sandbox exec job -- cat /sandbox/seen)" "a value|"
    expect "$(openshell sandbox exec job -- sh -c 'printf "%s|%s" "$K" "${EMPTY-unset}"')" "a value|"
    # An exec's own value wins, for that exec.
    expect "$(openshell sandbox exec job --env K=other -- printenv K)" other
    expect "$(openshell sandbox exec job -- printenv K)" "a value"
}

@test "names of variables that are no identifiers are refused before anything is made" {
    local bad
    for bad in 'A;touch /tmp/pwn;B=1' 1A=x A-B=x =x 'A B=x' $'A\nB=x' OPENSHELL_X=1 NOEQUALS; do
        run openshell sandbox create --name bad --detach --env "$bad"
        ((status == 1 || status == 2))
    done
    expect "$(names)" ""
    create job
    for bad in 'A;touch /tmp/pwn;B=1' 1A=x A-B=x =x 'A B=x' $'A\nB=x'; do
        run openshell sandbox exec job --env "$bad" -- touch /sandbox/ran
        ((status == 1 || status == 2))
    done
    run -1 openshell sandbox exec job -- test -e /sandbox/ran -o -e /tmp/pwn
}

@test "two creates with one name: exactly one wins, the other is told" {
    local first second status1 status2
    for _ in 1 2 3 4 5; do
        status1=0 status2=0
        openshell sandbox create --name same --detach >"$ROOT/1" 2>&1 &
        first=$!
        openshell sandbox create --name same --detach >"$ROOT/2" 2>&1 &
        second=$!
        wait "$first" || status1=$?
        wait "$second" || status2=$?
        expect "$((status1 + status2))" 1
        grep -q 'same.*exists\|exists.*same' "$ROOT/1" "$ROOT/2"
        expect "$(names)" same
        expect "$(openshell sandbox exec same -- echo ok)" ok
        openshell sandbox delete same
    done
}

@test "create with a name that is taken says how to go on" {
    create job
    run -1 openshell sandbox create --name job --detach
    contains "$output" job
    contains "$output" "sandbox delete job"
    expect "$(phase_of job)" Ready
}

@test "names: what is allowed and what is not" {
    local bad good
    good=$(printf 'a%.0s' $(seq 63))
    create "$good"
    create a-1
    for bad in "${good}a" A a_b -a a- a--b a.b 'a b' $'a\nb' ä ../x /; do
        run openshell sandbox create "--name=$bad" --detach
        ((status == 1 || status == 2))
        contains "$output" name
    done
    expect "$(names)" "a-1 $good"
}

@test "--from DIR gives a wholly writable root, and a directory that is not there is refused" {
    mkdir -p root/{bin,usr,etc,proc,dev,tmp,sandbox}
    cp "$(command -v busybox || echo /bin/true)" root/bin/ || true
    run -1 openshell sandbox create --name f --detach --from ./nowhere
    contains "$output" nowhere
    run openshell sandbox create --name f --detach --from "$ROOT/file-not-dir"
    ((status == 1))
    expect "$(names)" ""
}

@test "what a failed create leaves does not block the name" {
    run openshell sandbox create --name again --detach --from ./nowhere
    ((status != 0))
    create again
    expect "$(openshell sandbox exec again -- echo ok)" ok
}

@test "an interrupted create leaves a sandbox that is listed and can be deleted, or none" {
    local delay status
    openshell sandbox list
    for delay in 0 1 2 4 6 8 10 13 16 20 25 30 40 60; do
        status=$(interrupted "$delay" INT "$PRODUCT/bin/openshell" sandbox create --name cut --detach)
        [[ $status == 130 || $status == 0 ]]
        run openshell sandbox delete cut
        ((status == 0)) || {
            echo "$output"
            false
        }
        wait_for 5 eval '[ -z "$(names)" ]'
        create cut
        openshell sandbox delete cut
    done
    wait_for 5 eval '[ -z "$(in_our_mounts)" ]'
}

@test "an interrupted create that waits for its main command ends with 130" {
    expect "$(interrupted 400 INT "$PRODUCT/bin/openshell" sandbox create --name w --no-keep -- \
        sleep 1000)" 130
}
