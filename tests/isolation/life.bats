#!/usr/bin/env bats
# How processes begin and end, and that nothing of a sandbox outlives it.
load helper

@test "exit codes and signals come back as the kernel gave them" {
    run sandbox --exec -- sh -c 'exit 42'
    [[ $status == 42 ]]
    run sandbox --exec -- sh -c 'kill -SEGV $$'
    [[ $status == $((128 + 11)) ]]
    run sandbox -- sh -c 'exit 43'
    [[ $status == 43 ]]
    run sandbox -- sh -c 'kill -KILL $$'
    [[ $status == $((128 + 9)) ]]
    run sandbox --exec --login -- sh -c 'kill -TERM $$'
    [[ $status == $((128 + 15)) ]]
}

@test "a program that is not there: 127; one that cannot be run: 126, with the reason" {
    run -127 sandbox --exec -- /no/such/program
    [[ $status == 127 && $output == *"'/no/such/program'"*"no such program"* ]]
    run -127 sandbox --exec -- no-such-program
    [[ $status == 127 ]]
    run -127 sandbox -- no-such-program
    [[ $status == 127 ]]
    run sandbox --exec -- /etc/passwd
    [[ $status == 126 && $output == *"Permission denied"* ]]
    run -127 sandbox --exec --login -- no-such-program
    [[ $status == 127 ]]
    run sandbox --exec --workdir /no/such/place -- true
    [[ $status == 126 && $output == *"/no/such/place"* ]]
}

@test "arguments and variables arrive byte by byte" {
    local odd=$'a \n\t\r\x01 "quoted" '\''single'\'' $(id) `id` \\ * \xff'
    for options in "--exec" "--exec --login" "--login" ""; do
        # shellcheck disable=SC2086 # options are words
        run -0 --keep-empty-lines sandbox $options --env "ODD=$odd" -- \
            sh -c 'printf "%s|" "$ODD" "$@"' name "$odd" '' -x
        [[ $output == "$odd|$odd||-x|" ]]
    done
    local long
    long=$(head -c 122880 /dev/zero | tr '\0' x)
    run sandbox --exec -- sh -c 'echo ${#1}' name "$long"
    [[ $output == 122880 ]]
    run sandbox --exec --login -- sh -c 'echo ${#1}' name "$long"
    [[ $output == 122880 ]]
}

@test "variables: the sandbox's own, and those given over them, in main and exec alike" {
    for options in "--exec" "--exec --login" "" "--login"; do
        # shellcheck disable=SC2086 # options are words
        run sandbox $options --env GIVEN=yes --env USER=other -- \
            sh -c 'echo "$HOME $USER $LOGNAME $SHELL $LANG $GIVEN $PWD ${TERM-none}"'
        echo "$output"
        [[ $output == "/sandbox other sandbox /bin/bash C.UTF-8 yes /sandbox none" ]]
    done
    run sandbox --exec -- sh -c 'env | grep -c OPENSHELL'
    [[ $output == 0 ]]
}

@test "PATH is searched in the workload's own environment" {
    sandbox --exec -- sh -c 'mkdir -p bin && printf "#!/bin/sh\necho mine\n" >bin/ls && chmod +x bin/ls'
    run sandbox --exec --env PATH=/sandbox/bin:/usr/bin -- ls
    [[ $output == mine ]]
    run -127 sandbox --exec --env PATH=/no/such/place -- ls
    [[ $status == 127 ]]
}

@test "a program in the workload's own PATH that cannot be run does not hide one that can" {
    sandbox --exec -- sh -c 'mkdir -p bin && echo x >bin/true'
    sandbox --exec --env PATH=/sandbox/bin:/usr/bin -- true
}

@test "signals are at their defaults, nothing is blocked, the mask is 022" {
    run inside 'grep -E "^Sig(Blk|Ign)" /proc/self/status; umask'
    echo "$output"
    [[ $output == *"SigBlk:	0000000000000000"* && $output == *"SigIgn:	0000000000000000"* ]]
    [[ $output == *0022 ]]
}

@test "only the standard streams are open, and they can be opened again by name" {
    run inside 'ls /proc/self/fd | tr "\n" " "'
    [[ $output == "0 1 2 3 " ]] # 3 is the directory itself
    run inside 'echo out >/dev/stdout; echo err >/dev/stderr; cat </dev/stdin'
    [[ $status == 0 && $output == *out* && $output == *err* ]]
}

@test "standard input arrives, binary and whole" {
    head -c 300000 /dev/urandom >"$ROOT/data"
    sandbox --exec --input -- cat <"$ROOT/data" >"$ROOT/copy"
    cmp "$ROOT/data" "$ROOT/copy"
}

@test "a terminal: size, controlling terminal, owner" {
    for options in "--exec" "--exec --login" ""; do
        # shellcheck disable=SC2086 # options are words
        run sandbox $options --tty -- sh -c \
            'stty size; tty; echo x >/dev/tty; stat -c %U "$(tty)"; echo "$TERM"; ps -o tty= -p $$'
        output=${output//$'\r'/}
        echo "$output"
        [[ ${lines[0]%$'\r'} == "33 101" && $output == */dev/pts/* && $output == *sandbox* ]]
        [[ $output == *xterm-256color* && $status == 0 ]]
    done
}

@test "killing a session takes its whole tree, setsid'd and stopped processes too" {
    local start=$SECONDS
    run sandbox --exec --kill-after 300 --grace 500 -- sh -c \
        'trap "" TERM; (setsid sleep 9001 &) ; (trap "" TERM; setsid sh -c "trap \"\" TERM; sleep 9002; :" &)
         sleep 9003 & kill -STOP $!; while :; do sleep 9004; done'
    [[ $status == $((128 + 9)) ]]
    ((SECONDS - start < 8))
}

@test "a session that obeys ends before the grace is over" {
    local start=$SECONDS
    run sandbox --exec --kill-after 300 --grace 20000 -- sleep 9001
    [[ $status == $((128 + 15)) ]]
    ((SECONDS - start < 10))
}

@test "orphans are reaped, and statuses of real children are not stolen" {
    run sandbox --exec -- bash -c \
        'for ((i = 0; i < 300; i++)); do (sleep 0.01 &); done
         sleep 1; grep -l "^State:.Z" /proc/[0-9]*/status | wc -l; exit 42'
    [[ $status == 42 && $output == 0 ]]
}

# The runtime itself, without a time limit around it; its number is in RUNTIME.
start_runtime()
{
    "$SHELL_PROGRAM" --state "$STATE" --cache "$BATS_FILE_TMPDIR/cache" "$@" 3>&- &
    RUNTIME=$!
}

has_processes()
{
    (($(processes_below "$ROOT" | wc -l) >= $1))
}

has_no_processes()
{
    [[ -z $(processes_below "$ROOT") ]]
}

@test "killing the runtime ends everything, at once" {
    start_runtime --exec -- sh -c 'sleep 9001 & setsid sleep 9002 & sleep 9003'
    # Process 1, two reapers, main, the shell and what it started.
    eventually has_processes 7
    kill -KILL "$RUNTIME"
    wait "$RUNTIME" || :
    eventually has_no_processes
    # And the next start finds all in order.
    sandbox --exec -- true
}

@test "killing the runtime while the boundary is being made leaves nothing" {
    local i
    for i in 1 2 3 4 5 6 7 8 9; do
        start_runtime --exec -- sleep 9001
        read -rt "0.00$i" <> <(:) || :
        kill -KILL "$RUNTIME"
        wait "$RUNTIME" || :
    done
    eventually has_no_processes
    sandbox --exec -- true
}

@test "what was written survives a stop; what was not asked for does not" {
    sandbox --exec -- sh -c 'echo 1 >/sandbox/f; echo 2 >/var/tmp/f; echo 3 >/run/f; echo 4 >/tmp/f; echo 5 >/dev/shm/f'
    run inside 'cat /sandbox/f /var/tmp/f /run/f /tmp/f; ls /dev/shm'
    [[ $output == $'1\n2\n3\n4' ]]
}

@test "two sandboxes that are made at once share one new skeleton" {
    local pids=() i failed=0
    for i in 1 2 3 4; do
        timeout 60 "$SHELL_PROGRAM" --state "$ROOT/state$i" --cache "$ROOT/cache" --exec -- true 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || failed=1
    done
    ((failed == 0))
    [[ $(find "$ROOT/cache" -maxdepth 1 -name 'etc-??????' | wc -l) == 1 ]]
}

@test "main waits: nothing of it has run before it is started" {
    run -0 sandbox --evidence --
    [[ $output == *seccomp_filter=1* ]]
}
