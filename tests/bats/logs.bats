#!/usr/bin/env bats
# What happened to a sandbox: asked for, followed, filtered, after restarts; and that nothing in it
# acts on a terminal.

load helper

# line_is_there NAME TEXT...: the log has a line with all of them
line_is_there()
{
    local name=$1 lines text
    shift
    lines=$(openshell logs "$name" -n 0 2>/dev/null) || return 1
    for text in "$@"; do
        lines=$(grep -F -- "$text" <<<"$lines") || return 1
    done
}

@test "the log names each step of a start, and an exec with its end" {
    create demo
    run -3 openshell sandbox exec demo -- sh -c 'exit 3'
    wait_for 5 line_is_there demo '[sandbox] [INFO ] [session] ' 'code=3'
    openshell logs demo -n 0 >log
    grep -F '[gateway] [INFO ] [lifecycle] the sandbox is ready' log
    grep -F '[sandbox] [INFO ] [startup] the configuration is accepted' log
    grep -F '[sandbox] [INFO ] [startup] the main process is started' log
    grep -F 'an exec begins' log | grep -F 'program=sh'
    # Seconds and milliseconds, source in 7 columns, level in 5, keys in order.
    run grep -vE '^\[[0-9]{10}\.[0-9]{3}\] \[(gateway|sandbox)\] \[(ERROR|WARN |INFO |DEBUG)\] \[[a-z]+\] .+$' log
    expect "$output" ""
    expect "$(sort -s -t '[' -k 2,2 log)" "$(cat log)"
    # Arguments are nobody's business: they may be secrets.
    openshell sandbox exec demo -- sh -c ': my-secret-argument'
    wait_for 5 line_is_there demo code=0
    lacks "$(openshell logs demo -n 0)" my-secret-argument
    lacks "$(cat "$STATE"/sandboxes/*/log/*.log)" my-secret-argument
}

@test "logs: options" {
    local id
    create demo
    wait_for 5 line_is_there demo 'main process is started'
    id=$(id_of demo)
    expect "$(openshell logs demo -n 2 | wc -l)" 2
    expect "$(openshell logs demo -n 2)" "$(openshell logs demo | tail -n 2)"
    lacks "$(openshell logs demo --source gateway)" '[sandbox]'
    lacks "$(openshell logs demo --source sandbox)" '[gateway]'
    expect "$(openshell logs demo --source sandbox --source gateway)" "$(openshell logs demo)"
    expect "$(openshell logs demo --source all)" "$(openshell logs demo)"
    expect "$(openshell logs demo --level error)" ""
    expect "$(openshell logs demo --level INFO)" "$(openshell logs demo)"
    run --separate-stderr -0 openshell logs demo --level nonsense
    contains "$stderr" nonsense
    expect "$output" "$(openshell logs demo)"
    run --separate-stderr -0 openshell logs demo --since 1h
    contains "$stderr" 'limited number'
    expect "$output" "$(openshell logs demo)"
    run --separate-stderr -0 openshell logs demo --since 0s
    expect "$output" ""
    expect "$(openshell lg demo)" "$(openshell logs demo)"
    # Without a name it is the last one.
    run --separate-stderr -0 openshell logs
    contains "$stderr" demo
    expect "$output" "$(openshell logs demo)"
    for bad in '-n -1' '-n x' '--since 5' '--since 5d' '--since -5m' '--source nobody' \
        '--tail -o yaml' 'a b'; do
        # shellcheck disable=SC2086 # split on purpose
        run -2 openshell logs $bad
    done
    run -1 openshell logs nobody
    contains "$output" nobody
    run -1 openshell logs $'x\e[2J'
    lacks "$output" $'\e'
    # JSON has the same lines.
    openshell logs demo -o json >log.json
    expect "$(json "[l['message'] for l in d['logs']] != [] and d['buffer_total'] == len(d['logs'])" <log.json)" true
    expect "$(json "sorted(d['logs'][0])" <log.json)" \
        '["event_time", "fields", "level", "message", "source", "target"]'
    openshell logs demo -o yaml | grep -q '^buffer_total: '
    [[ -n $id ]]
}

@test "nothing that a sandbox's user wrote acts on the terminal" {
    create demo
    openshell sandbox exec demo -- $'x\e[2J\e]52;c;QQ==\a\xc2\x9b31m\r' || true
    openshell sandbox exec demo --no-login-shell -- $'/bin/\e[31mno' || true
    wait_for 5 line_is_there demo '\x1b[2J'
    {
        openshell logs demo -n 0
        openshell logs demo -n 0 -o json
        openshell logs demo -n 0 -o yaml
        cat "$STATE"/sandboxes/*/log/*.log "$STATE"/gateway/gateway.log
    } >log
    run env LC_ALL=C grep -c $'[\x01-\x08\x0b-\x1f\x7f]\\|\xc2[\x80-\x9f]' log
    expect "$output" 0
}

@test "a follower sees what was said, then what is said, until the sandbox is deleted" {
    local follower
    create demo
    LIMIT=60 openshell logs demo --tail >followed 2>&1 &
    follower=$!
    wait_for 5 grep -q 'the sandbox is ready' followed
    openshell sandbox exec demo -- true
    wait_for 5 grep -q 'an exec begins' followed
    openshell sandbox stop demo
    wait_for 5 grep -q 'the sandbox is stopped' followed
    openshell sandbox start demo
    wait_for 5 grep -q 'STARTING' followed
    openshell sandbox delete demo
    wait "$follower"
    grep -q 'being deleted' followed
}

@test "a follower: JSON lines, filters, a reader that goes away, an interrupt" {
    local follower
    create demo
    LIMIT=60 openshell logs demo --tail -o json --source gateway >followed &
    follower=$!
    wait_for 5 grep -q 'the sandbox is ready' followed
    openshell sandbox stop demo
    wait_for 5 grep -q 'the sandbox is stopped' followed
    openshell sandbox delete demo
    wait "$follower"
    while read -r line; do
        expect "$(json "d['source']" <<<"$line")" gateway
    done <followed
    create again
    # Nobody reads: it ends by itself although nothing happens, and says nothing.
    SECONDS=0
    run --separate-stderr bash -c '"$@" 2>err | head -n 1; exit "${PIPESTATUS[0]}"' - \
        timeout 30 "$PRODUCT/bin/openshell" logs again --tail
    expect "$status" 141
    expect "$(cat err)" ""
    ((SECONDS < 20))
    expect "$(interrupted 700 INT "$PRODUCT/bin/openshell" logs again --tail)" 130
}

@test "a new gateway gets the lines that the supervisor kept, each once" {
    create demo
    openshell sandbox exec demo -- true
    wait_for 5 line_is_there demo 'code=0'
    openshell logs demo --source sandbox | cut -d ' ' -f 2- | sort >before
    openshell gateway stop
    openshell sandbox get demo >/dev/null
    wait_for 10 line_is_there demo 'code=0'
    openshell logs demo --source sandbox | cut -d ' ' -f 2- | sort >after
    expect "$(comm -23 before after)" ""
    expect "$(uniq -d after)" "$(uniq -d before)"
}

@test "lines that were said while the gateway was away arrive" {
    create demo -- sleep "$NAP"
    openshell gateway stop
    kill -KILL "$(sleepers "$NAP")"
    wait_for 5 grep -q 'the main process ended' "$STATE"/sandboxes/*/log/supervisor.log
    openshell gateway start
    wait_for 10 line_is_there demo 'the main process ended' 'code=137'
    wait_for 5 line_is_there demo '[gateway] [ERROR]' MainProcessFailed
}

@test "the last words of a supervisor that gives up are in the log" {
    local runtime
    create demo
    runtime=$(runtime_pid "$(id_of demo)")
    kill -KILL "$runtime"
    wait_for 10 phase_is demo Error
    wait_for 5 line_is_there demo '[sandbox]' 'ending: runtime-lost'
    line_is_there demo '[gateway] [ERROR]' RuntimeLost
}

@test "a sandbox's log files have a limit" {
    local log
    create demo
    log=$(echo "$STATE"/sandboxes/*/log/supervisor.log)
    head -c 1100000 /dev/zero | tr '\0' 'x' >>"$log"
    openshell sandbox exec demo -- true
    wait_for 5 test -e "$log.1"
    (($(stat -c %s "$log") < 10000))
    (($(stat -c %s "$log.1") > 1100000))
    wait_for 5 line_is_there demo code=0
    expect "$(stat -c %a "$log.1")" 600
}
