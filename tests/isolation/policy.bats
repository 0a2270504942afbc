#!/usr/bin/env bats
# The controls of a policy: file rules, identity, evidence.
load helper

# The default policy's paths, to add to.
USUAL=(--read-only /usr --read-only /bin --read-only /lib --read-only /etc --read-only /proc)

@test "default policy: what may be read, what may be written" {
    run inside '
        for path in /usr/bin/env /etc/passwd /proc/self/status /dev/urandom; do
            [ -r $path ] && head -c 1 $path >/dev/null || echo "unreadable $path"
        done
        ls /var/log >/dev/null || echo "unreadable /var/log"
        for path in /tmp /sandbox /var/tmp /run /dev/shm; do
            echo x >$path/probe && rm $path/probe || echo "not writable: $path"
        done
        for path in / /home /var /var/lib /mnt /srv; do
            ls $path >/dev/null 2>&1 && echo "readable: $path"
        done
        for path in /var/log /home /var/lib; do
            (echo x >$path/probe) 2>/dev/null && echo "writable: $path"
        done
        exit 0'
    echo "$output"
    [[ $status == 0 && -z $output ]]
}

@test "the listed paths and the base layer, nothing else" {
    run sandbox --exec "${USUAL[@]}" --read-write /home -- sh -c '
        echo x >/home/probe || echo "not writable: /home"
        for path in /tmp /var/tmp /run /dev/shm /sandbox; do
            echo x >$path/probe && rm $path/probe || echo "not writable: $path"
        done
        ls /var/log >/dev/null 2>&1 && echo "readable: /var/log"
        ls / >/dev/null 2>&1 && echo "readable: /"
        exit 0'
    echo "$output"
    [[ $status == 0 && -z $output ]]
}

@test "a policy chooses the access to a path of the base layer" {
    run sandbox --exec "${USUAL[@]}" --read-only /tmp --read-only /sandbox -- \
        sh -c 'ls /tmp && ! (echo x >/tmp/probe) 2>/dev/null && ! (echo x >/sandbox/probe) 2>/dev/null'
    echo "$output"
    [[ $status == 0 ]]
}

@test "the working directory is included when asked for, over a read-only listing" {
    run sandbox --exec "${USUAL[@]}" --read-only /sandbox --include-workdir -- \
        sh -c 'echo x >/sandbox/probe'
    echo "$output"
    [[ $status == 0 ]]
}

@test "a path that is missing does not take the other rules away" {
    run sandbox --exec "${USUAL[@]}" --read-only /nonexistent --read-write /tmp -- sh -c '
        (echo x >/etc/x) 2>/dev/null || (echo x >/usr/x) 2>/dev/null || ls /home 2>/dev/null || echo held'
    echo "$output"
    [[ $status == 0 && $output == *warning*"'/nonexistent'"* && $output == *held ]]
}

@test "all paths missing never means open" {
    run -126 sandbox --exec --read-only /nonexistent --read-write /neither -- /usr/bin/true
    echo "$output"
    [[ $output == *"'/nonexistent'"* && $output == *"'/neither'"* && $output == *"Permission denied"* ]]
}

@test "hard_requirement with a missing path is refused, by name" {
    run sandbox --hard --exec "${USUAL[@]}" --read-only /nonexistent -- true
    echo "$output"
    [[ $status == 125 && $output == *hard_requirement*"'/nonexistent'"* ]]
}

@test "hard_requirement with files, devices, links, sockets and pipes" {
    need_command python3
    sandbox --exec -- sh -c 'mkdir -p /sandbox/d; ln -sfn d /sandbox/l; mkfifo /sandbox/p; /usr/bin/python3 -c "
import socket
socket.socket(socket.AF_UNIX).bind(\"/sandbox/s\")"'
    run sandbox --hard --exec "${USUAL[@]}" --read-only /etc/hosts --read-write /dev/null \
        --read-only /dev/urandom --read-only /sandbox/l --read-write /sandbox/p \
        --read-only /sandbox/s --read-only /dev/fd --read-write /var/run -- \
        sh -c 'echo x >/dev/null && head -c 1 /dev/urandom >/dev/null && cat /etc/hosts >/dev/null'
    echo "$output"
    [[ $status == 0 && $output != *warning* ]]
}

@test "no path at all: no rules, and a warning; refused when they are required" {
    run sandbox --exec --filesystem -- sh -c 'ls / >/dev/null && echo open'
    echo "$output"
    [[ $output == *warning*"names no path"* && $output == *open ]]
    run sandbox --hard --exec --filesystem -- true
    [[ $status == 125 && $output == *hard_requirement* ]]
}

@test "the root may be read, when the policy says so" {
    run sandbox --exec --hard --read-only / --read-write /tmp -- \
        sh -c 'ls / /home >/dev/null && ! (echo x >/home/probe) 2>/dev/null && echo x >/tmp/probe'
    echo "$output"
    [[ $status == 0 ]]
}

@test "a link that the workload left leads no rule elsewhere" {
    # /var/run is a link of ours to /run, where the workload may write; /run/way is its own.
    sandbox --exec -- sh -c 'ln -sfn /home /run/way; ln -sfn /home /sandbox/way'
    run sandbox --exec "${USUAL[@]}" --read-write /var/run/way --read-write /sandbox/way -- \
        sh -c '(echo x >/home/probe) 2>/dev/null && echo open; ls /home 2>/dev/null && echo readable; exit 0'
    echo "$output"
    [[ $output == *warning*"'/var/run/way'"* && $output != *open* && $output != *readable* ]]
}

@test "rules hold the same in main, exec, terminal and login shell" {
    local options
    for options in "" "--exec" "--tty" "--exec --tty" "--login" "--exec --login" "--exec --login --tty"; do
        # shellcheck disable=SC2086 # options are words
        run sandbox $options "${USUAL[@]}" --read-only /sandbox -- sh -c \
            '(echo x >/sandbox/probe) 2>/dev/null || ls /home 2>/dev/null || grep -cE "^(NoNewPrivs:.1|Seccomp:.2|CapBnd:.0000000000000000)" /proc/self/status'
        echo "$options: $output"
        [[ ${output%$'\r'} == 3 ]]
    done
}

@test "an exec may signal the main process and its session" {
    run sandbox --exec -- sh -c 'until pkill -TERM -x sleep; do :; done; echo signalled'
    [[ $output == signalled ]]
}

@test "identity: the default" {
    run inside 'id -u; id -g; id -G; id -un; stat -c %U /sandbox'
    [[ $output == $'1000\n1000\n1000\nsandbox\nsandbox' ]]
}

@test "identity: a number, with a name and its own files" {
    for id in 2001 77 4294967294; do
        run sandbox --exec --run-as-user "$id" --run-as-group sandbox -- sh -c \
            'id -u; id -g; id -un; echo x >/sandbox/probe && stat -c %u /sandbox/probe'
        echo "$output"
        [[ $output == "$id"$'\n1000\nsandbox\n'"$id" ]]
    done
    run sandbox --exec --run-as-user sandbox --run-as-group 3000 -- sh -c 'id -u; id -g; id -gn'
    [[ $output == $'1000\n3000\nsandbox' ]]
}

@test "identity: none that is not allowed" {
    for id in 0 root -1 4294967295 nobody 1x ''$'\n'; do
        run sandbox --exec --run-as-user "$id" -- true
        echo "$output"
        [[ $status == 125 && $output == *run_as_user* ]]
    done
}

@test "evidence says what is in force" {
    run -0 sandbox --evidence --limit 99 --run-as-user 1234 --
    local name
    for name in user mount pid network ipc uts cgroup; do
        [[ $output == *"${name}_namespace=1"* ]]
    done
    for name in landlock_denies seccomp_filter seccomp_denies no_new_privileges no_capabilities \
        loopback_only not_dumpable_core death_link; do
        [[ $output == *"$name=1"* ]]
    done
    [[ $output == *landlock_abi=[1-9]* && $output == *user_id=1234* && $output == *group_id=1000* ]]
    [[ $output == *process_limit_mechanism=rlimit* && $output == *process_limit=99* && $output == *root_kind=composed* ]]
    [[ $output == *usr_mechanism=overlay* || $output == *usr_mechanism=bind* ]]
    if is_root; then
        [[ $output == *host_user_id=1610613736* && $output == *$'supplementary_groups=\n'* ]]
    else
        [[ $output == *"host_user_id=$EUID"* ]]
    fi
}

@test "evidence does not claim rules that are not there" {
    run -0 sandbox --evidence --filesystem --
    [[ $output == *landlock_denies=0* && $output == *landlock_abi=0* ]]
    # And what lets everything be read still withholds something.
    run -0 sandbox --evidence --read-only / --read-write /home --read-write /var --read-write /tmp \
        --read-write /.openshell --
    [[ $output == *landlock_denies=1* ]]
}

@test "supplementary groups that cannot be dropped are named" {
    is_root || skip "needs root to start with groups"
    local directory
    directory=$(mktemp -d "$ROOT/user.XXXXXX")
    chmod 0711 "$ROOT"
    chmod 0755 "$TMPDIR"
    chown 4321:4321 "$directory"
    run setpriv --reuid 4321 --regid 4321 --groups 27,4 --inh-caps=-all -- env HOME="$directory" \
        "$SHELL_PROGRAM" --state "$directory/state" --cache "$directory/cache" --evidence --
    echo "$output"
    [[ $output == *supplementary_groups=4,27* ]]
}

# denying NUMBER ERRNO OPTION... -- COMMAND...: a sandbox on a kernel without a system call.
denying()
{
    timeout --kill-after=5 60 "$ATTEMPTS" --deny "$1" "$2" "$SHELL_PROGRAM" --state "$STATE" \
        --cache "$BATS_FILE_TMPDIR/cache" "${@:3}" 3>&-
}

# landlock_create_ruleset has the same number everywhere.
LANDLOCK=444

@test "a kernel without Landlock: a warning, and what is in force is not overstated" {
    local reason
    # ENOSYS, EOPNOTSUPP, EPERM
    for reason in "38 this kernel has none" "95 disabled at boot" "1 a filter around"; do
        run -0 denying "$LANDLOCK" "${reason%% *}" --evidence --exec -- sh -c 'ls / >/dev/null && echo runs'
        echo "$output"
        [[ $output == *warning*"Landlock is not available"*"${reason#* }"* && $output == *runs ]]
        [[ $output == *landlock_abi=0* && $output == *landlock_denies=0* ]]
        [[ $output == *seccomp_denies=1* ]]
    done
}

@test "a kernel without Landlock: refused where the policy demands it" {
    run denying "$LANDLOCK" 38 --hard --exec "${USUAL[@]}" -- true
    echo "$output"
    [[ $status == 125 && $output == *hard_requirement*"this kernel has none"* ]]
}

@test "what else a kernel or a container may refuse is named" {
    # clone3, unshare, fsopen, open_tree, pivot_root
    is_x86_64 || skip "the numbers are those of x86_64"
    run denying 435 1 --exec -- true
    [[ $status == 125 && $output == *"forbids new namespaces"* ]]
    run denying 272 1 --exec -- true
    [[ $status == 125 && $output == *"cgroup namespace"* ]]
    run denying 430 1 --exec -- true
    echo "$output"
    [[ $status == 125 && $output == *"forbids a new"* ]]
    run denying 428 1 --exec -- true
    [[ $status == 125 && $output == *"cannot bind"* ]]
    run denying 155 1 --exec -- true
    [[ $status == 125 && $output == *"cannot enter the new root"* ]]
    run denying 317 1 --exec -- true
    [[ $status == 125 && $output == *"system call filter"* ]]
}

is_x86_64()
{
    [[ $(uname -m) == x86_64 ]]
}
