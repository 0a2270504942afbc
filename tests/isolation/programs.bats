#!/usr/bin/env bats
# What people run has to work inside.
load helper

@test "bash, as a login shell and with its usual tools" {
    run sandbox --exec --login -- bash -c '
        set -e
        echo $BASH_VERSION >/dev/null
        printf "b\na\n" | sort | head -n 1
        diff <(echo same) <(echo same)
        x=$(mktemp); echo text >"$x"; grep -q text "$x"; rm "$x"
        find /etc -maxdepth 1 -name passwd
        echo a b | awk "{ print \$2 }"
        which awk
        sed -n 1p /etc/hostname'
    echo "$output"
    [[ $output == $'a\n/etc/passwd\nb\n/usr/bin/awk\ntrial' ]]
}

@test "the login profile starts no process" {
    # The number that the next process gets tells: a login shell uses up no more of them than
    # another one.
    run sandbox --exec -- bash -c 'a=$(bash -lc "echo \$\$"); b=$(bash -c "echo \$\$"); echo $((b - a))'
    [[ $output == 2 || $output == 1 ]]
}

@test "python: threads, processes, semaphores, event loops, terminals, interfaces" {
    need_command python3
    sandbox --exec -- /usr/bin/python3 -c '
import asyncio, multiprocessing, os, socket, subprocess, threading

assert multiprocessing.Pool(2).map(abs, [-1, -2]) == [1, 2]
lock = multiprocessing.Lock()
queue = multiprocessing.Queue()
process = multiprocessing.Process(target=queue.put, args=(7,))
process.start()
assert queue.get(timeout=20) == 7
process.join()

async def five():
    return 5

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
assert asyncio.run_coroutine_threadsafe(five(), loop).result(3) == 5

async def child():
    process = await asyncio.create_subprocess_exec("true")
    return await process.wait()

assert asyncio.run(child()) == 0
os.openpty()
assert [name for _, name in socket.if_nameindex()] == ["lo"]
left, right = socket.socketpair()
left.send(b"x")
assert right.recv(1) == b"x"
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
assert socket.gethostbyname("localhost") == "127.0.0.1"
subprocess.run(["true"], check=True)
path = "/tmp/socket"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
socket.socket(socket.AF_UNIX).connect(path)
'
}

@test "python: a virtual environment" {
    need_command python3
    /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3-venv is not installed"
    run sandbox --exec --login -- sh -c '/usr/bin/python3 -m venv v && v/bin/python -c "import sys; print(sys.prefix)" && v/bin/pip --version'
    echo "$output"
    [[ $status == 0 && $output == /sandbox/v* ]]
}

@test "python: certificates of authorities are there" {
    need_command python3
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || skip "ca-certificates is not installed"
    run sandbox --exec -- /usr/bin/python3 -c '
import ssl
print(len(ssl.create_default_context().get_ca_certs()) > 50)'
    [[ $output == True ]]
}

@test "git" {
    need_command git
    sandbox --exec --login -- sh -c '
        set -e
        git init -q repository
        cd repository
        git config user.email a@example.org
        git config user.name a
        echo x >file
        git add file
        git commit -q -m message
        git clone -q . ../clone
        git -C ../clone log --oneline | grep -q message'
}

@test "node" {
    need_command node
    run sandbox --exec --login -- node -e '
        const os = require("os");
        const { Worker } = require("worker_threads");
        new Worker("require(\"worker_threads\").parentPort.postMessage(5)", { eval: true })
            .on("message", (value) => console.log(value, Object.keys(os.networkInterfaces()).join()));'
    [[ $output == "5 lo" ]]
}

@test "java" {
    need_command java
    sandbox --exec --login -- sh -c '
        java -version
        command -v javac >/dev/null || exit 0
        echo "class A { public static void main(String[] a) throws Exception {
            Thread t = new Thread(() -> System.out.println(5)); t.start(); t.join();
            java.net.NetworkInterface.getNetworkInterfaces(); } }" >A.java
        java A.java'
}

@test "a compiler" {
    need_command cc
    run sandbox --exec --login -- sh -c '
        echo "int main(void) { return 9; }" >a.c && cc a.c -o a && ./a'
    [[ $status == 9 ]]
}

@test "terminals that programs make themselves" {
    need_command script
    run sandbox --exec -- script -qc tty /dev/null
    [[ $output == */dev/pts/* ]]
}

@test "tmux" {
    need_command tmux
    sandbox --exec -- sh -c 'tmux new-session -d "sleep 30" && tmux ls && tmux kill-server'
}

@test "users, hosts and services have names" {
    run inside 'getent passwd sandbox; getent group sandbox; getent passwd 65534; getent hosts trial; hostname'
    echo "$output"
    [[ $status == 0 && $output == *:/sandbox:/bin/bash* && $output == *nobody* && $output == *trial ]]
}

@test "interfaces can be listed with ip" {
    [[ -x /usr/sbin/ip || -x /usr/bin/ip || -x /sbin/ip ]] || skip "ip is not installed"
    run inside 'ip -o addr'
    [[ $output == *127.0.0.1* && $output == *::1* && ${#lines[@]} == 2 ]]
}

@test "a crash leaves no core" {
    run inside 'cd /tmp; sh -c "kill -ABRT \$\$"; ls /tmp | grep -c core'
    [[ $output == *0 ]]
}
