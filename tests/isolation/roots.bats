#!/usr/bin/env bats
# The composed root, and roots copied from a directory.
load helper

# A small root of its own: a shell, a few tools, their libraries.
make_root()
{
    local root=$1 program library
    mkdir -p "$root"/{bin,etc,tmp,proc,dev,var/log,data}
    for program in bash sh cat ls id stat mkdir touch ln sleep readlink; do
        cp -L "$(command -v "$program")" "$root/bin/$program"
        for library in $(ldd "$root/bin/$program" | grep -o '/[^ ]*'); do
            mkdir -p "$root${library%/*}"
            cp -Ln "$library" "$root$library"
        done
    done
    chmod 0777 "$root/data"
    echo "marker" >"$root/data/file"
    ln "$root/data/file" "$root/data/twin"
    ln -s file "$root/data/link"
    ln -s /etc/shadow "$root/data/absolute"
    truncate -s 1G "$root/data/sparse"
    echo end >>"$root/data/sparse"
    mkfifo "$root/data/pipe"
    cp "$root/bin/cat" "$root/bin/setuid"
    chmod 4755 "$root/bin/setuid"
    chmod 0640 "$root/data/twin"
    touch -d 2001-02-03 "$root/data/twin"
}

copied()
{
    # shellcheck disable=SC2153 # set by setup
    sandbox --from "$ROOT/source" "$@"
}

@test "composed: what is where, and whose" {
    run sandbox --exec --read-only / -- sh -c '
        ls / | tr "\n" " "; echo
        ls /dev | tr "\n" " "; echo
        stat -c "%n %U %a" /tmp /var /run /sandbox /home /var/tmp /dev/shm
        readlink /bin /var/run /dev/fd /dev/ptmx'
    echo "$output"
    [[ ${lines[0]} == *"bin "*"dev etc home lib"*"proc root run sandbox"*"tmp usr var "* ]]
    [[ ${lines[1]} == "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero " ]]
    [[ $output == *"/tmp sandbox 1777"* && $output == *"/sandbox sandbox 755"* ]]
    [[ $output == *"/dev/shm "*" 1777"* ]]
    [[ $output == *$'\n/run\n/proc/self/fd\npts/ptmx' ]]
}

@test "composed: /etc holds nothing of the host's people, services or secrets" {
    run inside 'cd /etc; ls -d shadow gshadow passwd gitconfig ssh sudoers cron.d systemd apt pip.conf npmrc 2>/dev/null; cat shadow gshadow; cut -d: -f1 passwd'
    echo "$output"
    [[ $output == $'gshadow\npasswd\nshadow\nroot\nsandbox\nnobody' ]]
    run inside 'ls /etc/ssl/private'
    [[ $status != 0 ]]
}

@test "composed: the skeleton is kept, and renewed when a source changed" {
    local first second
    sandbox -- true
    first=$(readlink "$BATS_FILE_TMPDIR/cache/etc-current")
    sandbox -- true
    second=$(readlink "$BATS_FILE_TMPDIR/cache/etc-current")
    [[ $first == "$second" ]]
    # As if a source had been another one when it was built.
    sed -i 's/^\([0-7]* [0-9]* \)[0-9]*\( .* ld.so.cache\)$/\11\2/' \
        "$BATS_FILE_TMPDIR/cache/$first/manifest"
    sandbox -- true
    second=$(readlink "$BATS_FILE_TMPDIR/cache/etc-current")
    [[ $first != "$second" && ! -e $BATS_FILE_TMPDIR/cache/$first ]]
}

@test "composed: a skeleton in use is not removed under a running sandbox" {
    local cache=$ROOT/cache first
    timeout 60 "$SHELL_PROGRAM" --state "$ROOT/one" --cache "$cache" --exec -- \
        sh -c 'until [ -e /sandbox/go ]; do sleep 0.05; done; cat /etc/profile >/dev/null && exit 7' 3>&- &
    local pid=$!
    eventually test -L "$cache/etc-current"
    eventually test -d "$ROOT/one/sandbox"
    first=$(readlink "$cache/etc-current")
    # As if another version had built it.
    sed -i '1s/$/ older/' "$cache/$first/manifest"
    timeout 60 "$SHELL_PROGRAM" --state "$ROOT/two" --cache "$cache" -- true 3>&-
    [[ $(readlink "$cache/etc-current") != "$first" && -e $cache/$first/root/profile ]]
    touch "$ROOT/one/sandbox/go"
    local code=0
    wait "$pid" || code=$?
    [[ $code == 7 ]]
}

@test "copied: runs, keeps links, modes and times, leaves out what means nothing inside" {
    make_root "$ROOT/source"
    run copied --exec --evidence -- sh -c '
        cat /data/file /data/link
        stat -c "%n %i %a" /data/file /data/twin
        [ /data/file -ef /data/twin ] && echo one file
        readlink /data/absolute
        stat -c %a /bin/setuid
        ls /data/pipe
        stat -c %y /data/twin
        pwd'  --
    echo "$output"
    [[ $output == *root_kind=copied* ]]
    run copied --exec --read-only / -- sh -c '
        cat /data/file /data/link
        [ /data/file -ef /data/twin ] && echo one file
        readlink /data/absolute
        stat -c %a /bin/setuid /data/twin
        ls /data/pipe 2>&1
        stat -c %y /data/twin
        pwd'
    echo "$output"
    [[ $output == *"one file"* && $output == */etc/shadow* && $output == *$'755\n640'* ]]
    [[ $output == *"No such file"* && $output == *2001-02-03* && $output == */sandbox ]]
    # The hole is still one.
    (($(stat -c %b "$STATE/rootfs/data/sparse") < 1000))
    [[ $(tail -c 4 "$STATE/rootfs/data/sparse") == end ]]
}

@test "copied: the warning says what was left out" {
    make_root "$ROOT/source"
    run -0 copied --exec -- sh -c :
    [[ $output == *warning*"1 devices, sockets and pipes were left out"*/data/pipe* ]]
}

@test "copied: made once; the source is not needed afterwards, and not changed" {
    make_root "$ROOT/source"
    copied --exec --read-write / -- sh -c 'echo changed >/data/new'
    [[ ! -e $ROOT/source/data/new ]]
    rm -rf "$ROOT/source"
    run copied --exec --read-only / -- cat /data/new
    [[ $output == changed ]]
}

@test "copied: wholly writable to an ordinary user's workload, as far as the policy allows" {
    is_root && skip "as root the files belong to other ids"
    make_root "$ROOT/source"
    copied --exec --read-write / -- sh -c 'echo x >/etc/x && echo x >/bin/x && mkdir /new'
    run copied --exec -- sh -c 'echo x >/etc/y'
    [[ $status != 0 ]]
}

@test "copied: owners are shifted into the sandbox's range" {
    is_root || skip "needs root"
    make_root "$ROOT/source"
    chown 33:44 "$ROOT/source/data/file"
    chown -h 55:66 "$ROOT/source/data/link"
    run copied --exec --read-only / -- stat -c '%u:%g' /data/file /data/link /bin/bash
    echo "$output"
    [[ $output == *$'33:44\n55:66\n0:0' ]]
    [[ $(stat -c %u "$STATE/rootfs/data/file") == $((0x60000000 + 33)) ]]
    run copied --exec --read-write / --run-as-user 33 -- sh -c 'id -u; echo mine >/data/file && echo written'
    [[ $output == *$'33\nwritten' ]]
}

@test "copied: a hostile root reads nothing of the host" {
    make_root "$ROOT/source"
    echo "secret of the host" >"$ROOT/secret"
    ln -s "$ROOT/secret" "$ROOT/source/etc/passwd"
    ln -sfn / "$ROOT/source/etc/group"
    rm -rf "$ROOT/source/proc" "$ROOT/source/dev"
    ln -s "$ROOT" "$ROOT/source/proc"
    ln -s /etc "$ROOT/source/dev"
    ln -s "$ROOT" "$ROOT/source/sandbox"
    run copied --exec --read-only / -- sh -c 'cat /etc/passwd; ls /proc/self/status /dev/null; ls -l /sandbox'
    echo "$output"
    [[ $output != *"secret of the host"* && $output == *$'/dev/null\n/proc/self/status'* ]]
    run copied --exec --read-only / --run-as-user sandbox -- id -u
    [[ $output == *1000 ]]
}

@test "copied: accounts are read from the root's own files" {
    make_root "$ROOT/source"
    mkdir -p "$ROOT/source/home/person"
    echo "person:x:1000:1000::/home/person:/bin/sh" >"$ROOT/source/etc/passwd"
    is_root && chown 1000:1000 "$ROOT/source/home/person"
    run copied --exec -- sh -c 'echo $HOME $USER; pwd; echo x >probe && echo written'
    echo "$output"
    [[ $output == *"/home/person person"* && $output == *$'/home/person\nwritten' ]]
    echo "sandbox:x:0:0::/:/bin/sh" >"$ROOT/source/etc/passwd"
    STATE=$ROOT/other
    run copied --exec --run-as-user sandbox -- true
    [[ $status == 125 && $output == *"id 0"* ]]
}

@test "copied: without bash, sh is the login shell, and a dash is refused" {
    make_root "$ROOT/source"
    rm "$ROOT/source/bin/bash"
    run copied --exec --login -- sh -c 'echo $SHELL "$@"' name 'a b' -c
    echo "$output"
    [[ $output == *"/bin/sh a b -c" ]]
    run -127 copied --exec --login -- -c 'echo evaluated'
    [[ $output == *"no bash"* && $output != *evaluated* ]]
}

@test "copied: a source that is not there is an error that names it" {
    run copied --exec -- true
    [[ $status == 125 && $output == *"$ROOT/source"* ]]
    [[ ! -e $STATE/rootfs && ! -e $STATE/rootfs.partial ]]
}

@test "copied: ending while it is copied leaves nothing half done" {
    make_root "$ROOT/source"
    head -c 200000000 /dev/urandom >"$ROOT/source/data/big"
    "$SHELL_PROGRAM" --state "$STATE" --cache "$BATS_FILE_TMPDIR/cache" --from "$ROOT/source" -- true 3>&- &
    local pid=$!
    eventually test -e "$STATE/rootfs.partial"
    kill -KILL "$pid"
    wait "$pid" || :
    eventually no_copier
    [[ ! -e $STATE/rootfs ]]
    rm "$ROOT/source/data/big"
    copied --exec -- sh -c :
    [[ -e $STATE/rootfs && ! -e $STATE/rootfs.partial ]]
}

no_copier()
{
    local file
    for file in /proc/[0-9]*/comm; do
        if grep -qs '^openshell-copy$' "$file" && grep -qsF "$ROOT" "${file%comm}cmdline"; then
            return 1
        fi
    done
}
