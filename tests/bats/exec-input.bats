#!/usr/bin/env bats
# exec ends when the remote process ends, whatever the local standard input is; the end of input
# arrives as one, and a client that dies does not make one.

load helper

setup()
{
    make_environment
    create job
}

teardown()
{
    [[ -n ${helper_pid:-} ]] && kill "$helper_pid" 2>/dev/null
    leave_environment
}

ends_quickly()
{
    local start
    start=$(milliseconds)
    "$@"
    (($(milliseconds) - start < 3000))
}

@test "a terminal" {
    local status=0
    # Without pipes at the far end of the terminal: script makes one.
    timeout --foreground 20 script -qec \
        "$PRODUCT/bin/openshell sandbox exec job -- sh -c 'echo from-terminal; exit 4'" \
        /dev/null >out </dev/null 3>&- || status=$?
    expect "$status" 4
    grep -q from-terminal out
}

@test "a file" {
    echo content >file
    ends_quickly openshell sandbox exec job -- true <file
    expect "$(openshell sandbox exec job -- cat <file)" content
}

@test "/dev/null, and a closed descriptor" {
    ends_quickly openshell sandbox exec job -- true </dev/null
    expect "$(openshell sandbox exec job -- cat </dev/null | wc -c)" 0
    ends_quickly openshell sandbox exec job -- true <&-
    expect "$(openshell sandbox exec job -- sh -c 'cat; echo end' <&-)" end
}

@test "a pipe that ends" {
    expect "$(printf 'one\ntwo\n' | openshell sandbox exec job -- cat)" $'one\ntwo'
    expect "$( (
        echo a
        sleep 0.4
        echo b
    ) | openshell sandbox exec job -- cat)" $'a\nb'
}

@test "a pipe that nobody closes and nobody writes to" {
    mkfifo fifo
    exec 7<>fifo
    ends_quickly openshell sandbox exec job -- true <fifo
    run -9 openshell sandbox exec job -- sh -c 'exit 9' <&7
    exec 7>&-
}

@test "a pipe that is written to for ever" {
    ends_quickly eval 'yes | openshell sandbox exec job -- head -n 1 >out'
    expect "$(<out)" y
    run -5 eval 'yes | openshell sandbox exec job -- sh -c "read x; exit 5"'
}

@test "input goes line by line, without waiting for its end" {
    local line
    mkfifo in out
    openshell sandbox exec job -- sh -c 'while read l; do echo "got $l"; done' <in >out &
    exec 7>in 8<out
    echo one >&7
    read -r -t 5 line <&8
    expect "$line" "got one"
    echo two >&7
    read -r -t 5 line <&8
    expect "$line" "got two"
    exec 7>&-
    wait $!
    exec 8<&-
}

@test "a command that closes its input early goes on" {
    head -c 5000000 /dev/zero >data
    run -0 openshell sandbox exec job -- sh -c 'exec <&-; sleep 0.2; echo went-on' <data
    expect "$output" went-on
}

@test "a reader of the output that goes away ends the client and the command" {
    timeout 20 bash -c '"$0" sandbox exec job -- sh -c "while :; do echo x; done" | head -n 1' \
        "$PRODUCT/bin/openshell" 3>&-
    wait_for 5 eval '! openshell sandbox exec job -- pgrep -f "while :; do echo x"'
}

@test "kill -9 of the client while cat receives: the command is killed, its input does not end" {
    (
        # An endless writer whose end would look like the end of the input.
        exec "$PRODUCT/bin/openshell" sandbox exec job -- \
            sh -c 'cat >/sandbox/file; echo "input ended" >/sandbox/ended'
    ) < <(exec yes 3>&-) 3>&- &
    helper_pid=$!
    wait_for 5 openshell sandbox exec job -- test -s /sandbox/file
    kill -KILL "$helper_pid"
    wait "$helper_pid" || true
    wait_for 6 eval '! openshell sandbox exec job -- pgrep -x cat'
    run -1 openshell sandbox exec job -- test -e /sandbox/ended
}

@test "kill -9 of the client that has sent nothing yet" {
    mkfifo fifo
    exec 7<>fifo
    (exec "$PRODUCT/bin/openshell" sandbox exec job -- \
        sh -c 'echo $$ >/sandbox/started; cat; echo "input ended" >/sandbox/ended') <fifo 3>&- 7>&- &
    helper_pid=$!
    wait_for 5 openshell sandbox exec job -- test -s /sandbox/started
    kill -KILL "$helper_pid"
    wait "$helper_pid" || true
    wait_for 6 eval '! openshell sandbox exec job -- pgrep -x cat'
    run -1 openshell sandbox exec job -- test -e /sandbox/ended
    exec 7>&-
}

@test "a client that goes away takes its command along; with --keep-running it does not" {
    local signal
    for signal in KILL TERM INT; do
        interrupted 400 "$signal" "$PRODUCT/bin/openshell" sandbox exec job -- sleep "${NAP}1"
        wait_for 5 eval '[ -z "$(sleepers "${NAP}1")" ]'
    done
    local i
    for i in $(seq 20); do
        interrupted "$((i * 7))" KILL "$PRODUCT/bin/openshell" sandbox exec job -- sleep "${NAP}1"
    done
    wait_for 5 eval '[ -z "$(sleepers "${NAP}1")" ]'
    interrupted 400 KILL "$PRODUCT/bin/openshell" sandbox exec --keep-running job -- sleep "${NAP}2"
    sleep 2.5
    [ -n "$(sleepers "${NAP}2")" ]
}

@test "an interrupted client says 130, a terminated one 143" {
    expect "$(interrupted 400 INT "$PRODUCT/bin/openshell" sandbox exec job -- sleep "${NAP}3")" 130
    expect "$(interrupted 400 TERM "$PRODUCT/bin/openshell" sandbox exec job -- sleep "${NAP}3")" 143
    wait_for 5 eval '[ -z "$(sleepers "${NAP}3")" ]'
}
