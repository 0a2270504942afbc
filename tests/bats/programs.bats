#!/usr/bin/env bats
# Ordinary programs work in a sandbox.

load helper

setup()
{
    make_environment
    create job
}

inside()
{
    openshell sandbox exec job -- "$@"
}

need()
{
    command -v "$1" >/dev/null || skip "$1 is not installed on this machine"
}

@test "bash, with process substitution, here documents and job control" {
    expect "$(inside bash -c 'cat <(echo a) <<<b; cat <<<c; sleep 0.1 & wait $!; echo $?')" $'a\nc\n0'
}

@test "python3: threads, processes, terminals, temporary files, addresses" {
    inside /usr/bin/python3 -c '
import asyncio, getpass, multiprocessing, os, pty, socket, subprocess, tempfile, threading
assert multiprocessing.Pool(2).map(abs, [-1, -2]) == [1, 2]
t = threading.Thread(target=lambda: None); t.start(); t.join()
multiprocessing.shared_memory if hasattr(multiprocessing, "shared_memory") else None
multiprocessing.Semaphore(1); multiprocessing.Queue().put(1)
pty.openpty()
assert subprocess.check_output(["echo", "x"]) == b"x\n"
with tempfile.TemporaryFile() as f: f.write(b"x")
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); c.close()
s6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
socket.if_nameindex()
async def f():
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: 5)
assert asyncio.run(f()) == 5
assert os.path.expanduser("~") == "/sandbox"
getpass.getuser()
'
}

@test "python3: a virtual environment" {
    /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || skip "python3-venv is not installed"
    inside sh -c '/usr/bin/python3 -m venv /sandbox/v && /sandbox/v/bin/python -c "import sys; print(sys.prefix)"' >out
    expect "$(tail -n 1 out)" /sandbox/v
}

@test "git: a repository with a commit" {
    [[ -x /usr/bin/git ]] || skip "git is not installed on this machine"
    inside sh -c 'git init -q r && cd r && git config user.email a@b && git config user.name n &&
        echo x >f && git add f && git commit -q -m first && git log --oneline | wc -l && git gc -q' >out
    expect "$(<out)" 1
}

@test "awk, which, sed, find, tar, vi's link: what goes through /etc/alternatives" {
    expect "$(inside awk 'BEGIN { print 6 * 7 }')" 42
    inside which sh >/dev/null
    expect "$(inside sh -c 'tar c -C /etc passwd | tar t')" passwd
}

@test "cc compiles a program that runs" {
    need cc
    inside sh -c 'echo "int main(void) { return 7; }" >p.c && cc -o p p.c && ./p; test $? = 7'
}

@test "node, with its interfaces" {
    need node
    [[ $(command -v node) == /usr/* || $(command -v node) == /opt/* ]] || skip "node is not below /usr"
    inside node -e 'require("os").networkInterfaces(); console.log(1 + 1)'
}

@test "java" {
    need java
    inside java -version
}

@test "names and clocks: id, hostname, localhost, date" {
    inside id -un >/dev/null
    inside id -gn >/dev/null
    [ -n "$(inside hostname)" ]
    inside getent hosts localhost >/dev/null
    expect "$(inside date +%Y-%m-%d)" "$(date +%Y-%m-%d)"
}

@test "names of the outside fail at once, they do not hang" {
    local start
    start=$(milliseconds)
    run inside getent hosts example.com
    ((status != 0))
    run inside bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
    ((status != 0))
    (($(milliseconds) - start < 3000))
}

@test "a terminal inside: script and stty" {
    inside script -qec 'tty; stty size' /dev/null | grep -q /dev/pts/
}
