#!/usr/bin/env bats
# Running a command in a sandbox: streams, codes, arguments, environment, limits.

load helper

setup()
{
    make_environment
    create job
}

execute()
{
    openshell sandbox exec job "$@"
}

@test "stdout and stderr stay apart" {
    execute -- sh -c 'echo out; echo err >&2' >out 2>err
    expect "$(<out)" out
    expect "$(<err)" err
}

@test "bytes arrive unchanged, both ways" {
    local sum
    head -c 3000001 /dev/urandom >data
    sum=$(sha256sum <data)
    expect "$(execute -- sha256sum <data)" "$sum"
    expect "$(execute -- cat <data | sha256sum)" "$sum"
    execute -- tee /dev/stderr <data >out 2>err
    cmp data out
    cmp data err
}

@test "64 MiB go in while the reader sleeps first, and come back through a slow pipe" {
    head -c 67108864 /dev/zero | openssl enc -aes-128-ctr -nosalt -pass pass:x 2>/dev/null >data ||
        head -c 67108864 /dev/urandom >data
    expect "$(execute -- sh -c 'sleep 1; sha256sum' <data)" "$(sha256sum <data)"
    for _ in 1 2 3; do
        expect "$(execute -- sh -c 'seq 7 3100007' | (
            sleep 1
            sha256sum
        ))" "$(seq 7 3100007 | sha256sum)"
    done
}

@test "a reader that sleeps does not make the gateway or the supervisor grow" {
    local gateway supervisor before after id
    id=$(id_of job)
    execute -- true
    gateway=$(gateway_pid)
    supervisor=$(supervisor_pid "$id")
    before=$(resident "$gateway" "$supervisor")
    execute -- sh -c 'sleep 2; sha256sum' </dev/zero >/dev/null 2>&1 &
    after=$(
        sleep 1
        resident "$gateway" "$supervisor"
    )
    kill $!
    ((after - before < 8192))
}

resident()
{
    local pid
    for pid in "$@"; do
        awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status"
    done | awk '{ n += $1 } END { print n }'
}

@test "exit codes are the command's own" {
    local code
    for code in 0 1 2 3 42 74 124 125 126 127 128 129 200 254 255; do
        run "-$code" execute -- sh -c "exit $code"
    done
}

@test "death by a signal is 128 and its number" {
    local number
    for number in 1 2 3 6 9 11 13 15; do
        run "-$((128 + number))" execute -- sh -c "kill -$number \$\$"
    done
}

@test "a program that is not there: 127, and a line that names it" {
    run -127 execute -- no-such-program
    contains "$output" no-such-program
    run -127 execute --no-login-shell -- no-such-program
    contains "$output" no-such-program
}

@test "a file that is no program: 126" {
    run -126 execute -- /etc/passwd
    run -126 execute --no-login-shell -- /etc/passwd
}

@test "arguments arrive byte for byte" {
    local long argument
    printf -v long 'x%.0s' $(seq 32768)
    for option in '' --no-login-shell; do
        for argument in $'a\nb' $'a\rb' $'a\tb' "'" '"' \\ '' ' ' $'\001' $'\177' -n -- '*' '$(id)' \
            '`id`' '~' '!x' 'é' "$long"; do
            # shellcheck disable=SC2086 # no option is no word
            execute $option -- printf '%s' "$argument" >got
            printf '%s' "$argument" | cmp - got
        done
    done
    expect "$(execute -- sh -c 'echo $#' x '' '' '')" 3
}

@test "a script of several lines is one argument" {
    run -0 execute -- python3 -c $'for i in (1, 2):\n  print(i)'
    expect "$output" $'1\n2'
}

@test "an argument that is too long, or no UTF-8, is refused with a reason, not cut" {
    local long
    printf -v long 'x%.0s' $(seq 122880)
    run execute -- echo "$long"
    ((status == 1))
    contains "$output" 122880
    contains "$output" limit
    lacks "$output" xxxxxxxx
    run -2 execute -- echo $'\xff'
    contains "$output" 'word 2 is not UTF-8'
}

@test "variables: several lines, quotes, spaces, nothing, not ASCII" {
    local value
    for value in $'two\nlines' $'cr\rlf\n' "it's" '"quoted"' '$(id) `id`' ' lead and trail ' '' 'grün' \
        '\n' '*'; do
        execute --env "V=$value" -- sh -c 'printf "%s" "$V"' >got
        printf '%s' "$value" | cmp - got
        execute --no-login-shell --env "V=$value" -- sh -c 'printf "%s" "$V"' >got
        printf '%s' "$value" | cmp - got
    done
    expect "$(execute --env A=1 --env B=2 --env A=3 -- sh -c 'echo "$A$B"')" 32
}

@test "the environment is the sandbox's: nothing of the caller's, HOME is /sandbox" {
    local text
    export CALLERS_SECRET=hidden
    text=$(execute -- env)
    lacks "$text" CALLERS_SECRET
    lacks "$text" "$ROOT"
    contains "$text" HOME=/sandbox
    contains "$text" PATH=
    lacks "$text" OPENSHELL_RUN_DIR
}

@test "--workdir" {
    expect "$(execute --workdir /tmp -- pwd)" /tmp
    expect "$(execute --no-login-shell --workdir /usr/bin -- pwd)" /usr/bin
    expect "$(execute -- pwd)" /sandbox
    run execute --workdir /no/such/place -- pwd
    ((status != 0))
    contains "$output" /no/such/place
}

@test "the login shell reads the profile, --no-login-shell does not" {
    execute -- sh -c 'echo "export FROM_PROFILE=yes" >>~/.profile; rm -f ~/.bash_profile ~/.bash_login'
    expect "$(execute -- sh -c 'echo "${FROM_PROFILE-no}"')" yes
    expect "$(execute --no-login-shell -- sh -c 'echo "${FROM_PROFILE-no}"')" no
}

@test "a profile that prints or ends does not turn a command into success" {
    execute -- sh -c 'echo "exit 0" >~/.profile'
    execute --no-login-shell -- touch /sandbox/still-works
    run execute --no-login-shell -- sh -c 'exit 5'
    expect "$status" 5
}

@test "--timeout: 124 in time, and no process of the tree stays" {
    local start
    start=$(milliseconds)
    run -124 execute --timeout 1 -- \
        sh -c 'sleep "$0"1 & setsid sleep "$0"2 & trap "" TERM; sleep "$0"3; sleep "$0"4' "$NAP"
    (($(milliseconds) - start < 5000))
    wait_for 3 eval '[ -z "$(sleepers "$NAP[1-4]")" ]'
    # Without one, and with one that is not reached, nothing changes.
    run -3 execute --timeout 20 -- sh -c 'exit 3'
}

@test "a background process that holds the output does not hold the client" {
    local start
    start=$(milliseconds)
    run --separate-stderr -0 execute -- sh -c 'sleep "$0" & echo ok' "${NAP}5"
    expect "$output" ok
    (($(milliseconds) - start < 5000))
    [ -n "$stderr" ]
    # It goes on running, and the next exec is not affected.
    [ -n "$(sleepers "${NAP}5")" ]
    start=$(milliseconds)
    run --separate-stderr -0 execute -- sh -c 'sleep "$0" >/dev/null 2>&1 & echo ok' "${NAP}6"
    expect "$output" ok
    expect "$stderr" ""
    (($(milliseconds) - start < 2000))
    [ -n "$(sleepers "${NAP}6")" ]
}

@test "64 at once, each with its own output and code" {
    local i pids=() bad=0 status
    for i in $(seq 64); do
        openshell sandbox exec job -- sh -c "echo $i; exit $i" >"out.$i" 2>"err.$i" &
        pids[i]=$!
    done
    for i in $(seq 64); do
        status=0
        wait "${pids[i]}" || status=$?
        if [[ $status != "$i" || $(<"out.$i") != "$i" || -s err.$i ]]; then
            echo "exec $i: status $status, output '$(<"out.$i")', errors '$(<"err.$i")'"
            bad=1
        fi
    done
    ((bad == 0))
}

@test "no zombies stay, and codes are right while orphans die" {
    execute -- sh -c 'i=0; while [ $i -lt 300 ]; do (sleep 0.1 &) ; i=$((i+1)); done'
    run -42 execute -- sh -c 'exit 42'
    sleep 0.5
    expect "$(execute --no-login-shell -- sh -c 'grep -l "^State:.Z" /proc/[0-9]*/status | wc -l')" 0
}

@test "exec reaches the sandbox by -n, and needs a command" {
    expect "$(openshell sandbox exec -n job -- echo by-option)" by-option
    run -2 openshell sandbox exec job
    run -2 openshell sandbox exec job --
    run -2 openshell sandbox exec job -n job -- true
    # Later "--" belong to the command.
    expect "$(execute -- echo -- x --)" "-- x --"
}

@test "options after the command are the command's" {
    expect "$(execute -- echo --timeout 1 --help)" "--timeout 1 --help"
}
