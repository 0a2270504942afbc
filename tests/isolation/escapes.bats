#!/usr/bin/env bats
# Every way out that the boundary should stop, tried from inside. What is tried, and the errno that
# each has to get, is in attempts_*.c.
load helper

setup_file()
{
    export HOST=$BATS_FILE_TMPDIR/host
    mkdir -p "$HOST"
    mkfifo "$HOST/input" "$HOST/output"
    # Where /usr is bound plainly, a socket below it refuses every sandbox.
    local usr=()
    # shellcheck disable=SC2034 # for the helper
    STATE=$BATS_FILE_TMPDIR/state
    if sandbox --evidence -- | grep -q usr_mechanism=overlay; then
        usr=(usr)
    fi
    "$ISOLATION_PROGRAMS/isolation-attempts" --host "$HOST" "${usr[@]}" <"$HOST/input" >"$HOST/output" 3>&- &
    # Held open until teardown_file: its end ends the helper.
    exec 8>"$HOST/input"
    while read -r line; do
        [[ $line == ready ]] && break
        echo "$line"
    done <"$HOST/output" >"$HOST/names"
}

teardown_file()
{
    exec 8>&-
    wait
}

# refused NAME...: each of these is refused in a sandbox.
refused()
{
    local options=() line
    while read -r line; do
        options+=(--env "$line")
    done <"$HOST/names"
    bring "$ATTEMPTS"
    sandbox "${options[@]}" "$@"
}

group()
{
    local names
    mapfile -t names < <("$ATTEMPTS" --list "$1")
    ((${#names[@]} >= 10))
    refused --exec -- ./isolation-attempts "${names[@]}"
}

@test "files of the host, and those that the policy withholds, are out of reach" {
    group files
}

@test "sockets of the host, and families that reach it, are out of reach" {
    group sockets
}

@test "processes of the host, and the trusted ones of the sandbox, are out of reach" {
    group processes
}

@test "there are no namespaces, mounts, identities or capabilities to be had" {
    group rights
}

@test "the kernel's settings and its wider calls are out of reach" {
    group kernel
}

@test "the main process is held as every exec is" {
    local names
    mapfile -t names < <("$ATTEMPTS" --list)
    ((${#names[@]} > 100))
    refused -- ./isolation-attempts "${names[@]}"
}

@test "a terminal session is held as well" {
    local names
    mapfile -t names < <("$ATTEMPTS" --list)
    refused --tty -- ./isolation-attempts "${names[@]}"
    refused --exec --tty --login -- ./isolation-attempts "${names[@]}"
}

@test "a login shell is held as well" {
    local names
    mapfile -t names < <("$ATTEMPTS" --list)
    refused --exec --login -- ./isolation-attempts "${names[@]}"
}

@test "without a sandbox the attempts succeed, so they prove something" {
    is_root || skip "needs root"
    local name result names all=0 failed=0
    mapfile -t names <"$HOST/names"
    for name in $("$ATTEMPTS" --control); do
        [[ $name == host-process ]] && continue
        result=$(env "${names[@]}" unshare --mount --uts "$ATTEMPTS" --raw "$name" 2>/dev/null)
        all=$((all + 1))
        if [[ $result != success ]]; then
            echo "$name: $result"
            failed=$((failed + 1))
        fi
    done
    # Some a kernel does not have, or a container around the test withholds.
    ((all > 60 && failed * 5 < all))
}

@test "a process of the host survives a signal from inside" {
    local pid
    pid=$(sed -n 's/^HOST_PROCESS=//p' "$HOST/names")
    refused --exec -- ./isolation-attempts host-process
    kill -0 "$pid"
    refused --exec -- sh -c "kill -KILL $pid; kill -KILL -1; kill -KILL 1; exit 0" || :
    kill -0 "$pid"
}

@test "process 1 cannot be killed from inside" {
    run sandbox --exec -- sh -c 'kill -KILL 1; kill -TERM 1; kill -STOP 1; echo still here; exit 4'
    echo "$output"
    [[ $status == 4 && $output == *"still here"* ]]
}

@test "killing the reaper: impossible for root's sandboxes, never code 0 for the others" {
    bring "$ATTEMPTS"
    run sandbox --exec -- sh -c './isolation-attempts kill-reaper; read -r never; exit 0' </dev/null
    echo "$output"
    if is_root; then
        [[ $status == 0 ]]
    else
        [[ $status == 125 && $output == *"unknown end"*"reaper was killed"* ]]
    fi
}

@test "a reaper that is stopped goes on" {
    bring "$ATTEMPTS"
    run sandbox --exec -- sh -c './isolation-attempts stop-reaper; exit 6'
    echo "$output"
    [[ $status == 6 ]]
}

@test "a fork bomb is held by the limit" {
    # shellcheck disable=SC2016 # for the shell inside
    run sandbox --limit 40 --exec --kill-after 6000 -- bash -c \
        'exec 2>/dev/null; f() { f | f & }; f; while :; do set -- /proc/[0-9]*; echo $#; done'
    [[ $status == $((128 + 9)) ]]
    # The processes that make others are outside of the limit when root made the sandbox. A list of
    # /proc is no snapshot: one made while many end and begin names more than there ever were at a
    # time, so the middle of many lists counts; without a limit there would be thousands.
    local counts middle most
    mapfile -t counts < <(printf '%s\n' "$output" | sort -n)
    middle=${counts[${#counts[@]} / 2]}
    most=${counts[-1]}
    echo "$middle in the middle of ${#counts[@]} lists, $most at most"
    ((middle > 20 && middle <= 46 && most < 120))
}

@test "threads count too" {
    need_command python3
    run sandbox --limit 40 --exec -- /usr/bin/python3 -c '
import threading, time
try:
    for i in range(100):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    print("no limit")
except RuntimeError:
    print("limited")
import os, sys
sys.stdout.flush()
os._exit(0)'
    echo "$output"
    [[ $output == limited ]]
}

@test "the runtime's paths do not show inside" {
    run inside 'cat /proc/1/cmdline /proc/[0-9]*/cmdline /proc/self/cgroup; env' --env A=b
    [[ $output != *"$ROOT"* && $output != *openshell/* ]]
}

@test "writing to a read-only path is refused in every way" {
    need_command python3
    sandbox --exec -- sh -c 'echo text >/sandbox/kept'
    run sandbox --exec --read-only /usr --read-only /lib --read-only /bin --read-only /proc \
        --read-only /etc --read-only /sandbox -- /usr/bin/python3 -c '
import os, errno
def refused(what, function, *arguments):
    try:
        function(*arguments)
        print("ALLOWED", what)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EXDEV):
            print("WRONG", what, error)
refused("create", open, "/sandbox/new", "w")
refused("truncate", os.truncate, "/sandbox/kept", 0)
refused("open to truncate", os.open, "/sandbox/kept", os.O_RDONLY | os.O_TRUNC)
refused("open to write", os.open, "/sandbox/kept", os.O_WRONLY)
refused("append", os.open, "/sandbox/kept", os.O_WRONLY | os.O_APPEND)
refused("unlink", os.unlink, "/sandbox/kept")
refused("rename", os.rename, "/sandbox/kept", "/sandbox/other")
refused("rename out", os.rename, "/sandbox/kept", "/tmp/other")
refused("link", os.link, "/sandbox/kept", "/sandbox/other")
refused("symlink", os.symlink, "/etc", "/sandbox/other")
refused("mkdir", os.mkdir, "/sandbox/other")
refused("mkfifo", os.mkfifo, "/sandbox/other")
print(open("/sandbox/kept").read(), end="")'
    echo "$output"
    [[ $status == 0 && $output == text ]]
}
