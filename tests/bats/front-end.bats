#!/usr/bin/env bats
# The front-end: how a subcommand is found, what is passed on to it, help, suggestions. Nothing
# here needs a gateway, and nothing starts one.

load helper

teardown()
{
    [ -z "$(gateway_pid)" ]
    leave_environment
}

# A directory of executables that print how they were started.
fake_commands()
{
    local name
    mkdir -p "$ROOT/$1"
    for name in "${@:2}"; do
        cat >"$ROOT/$1/$name" <<'END'
#!/bin/sh
echo "started: ${0##*/}"
for word; do echo "word: $word"; done
env | grep '^OPENSHELL_\(GATEWAY\|WORKSPACE\|VERBOSE\|COLOR\)' | sort
exit 7
END
        chmod +x "$ROOT/$1/$name"
    done
}

@test "a subcommand's executable is found in OPENSHELL_EXEC_PATH, gets its words, gives its code" {
    fake_commands own openshell-sandbox-list
    OPENSHELL_EXEC_PATH=$ROOT/own run openshell sandbox list a --b 'c d' -- -e
    expect "$status" 7
    expect "$output" "started: openshell-sandbox-list
word: a
word: --b
word: c d
word: --
word: -e"
}

@test "aliases of groups" {
    fake_commands own openshell-sandbox-list openshell-gateway-list
    OPENSHELL_EXEC_PATH=$ROOT/own run openshell sb list
    expect "$output" "started: openshell-sandbox-list"
    OPENSHELL_EXEC_PATH=$ROOT/own run openshell gw list
    expect "$output" "started: openshell-gateway-list"
}

@test "a command of a single word" {
    fake_commands own openshell-status
    OPENSHELL_EXEC_PATH=$ROOT/own run openshell status -o json
    expect "$output" "started: openshell-status
word: -o
word: json"
}

@test "global options before the group, and between group and verb, are passed on" {
    fake_commands own openshell-sandbox-list
    OPENSHELL_EXEC_PATH=$ROOT/own run openshell -g one --workspace=ours sandbox -vv \
        --gateway-endpoint unix:/x --color never list --gateway-insecure
    expect "$output" "started: openshell-sandbox-list
word: --gateway-insecure
OPENSHELL_COLOR=never
OPENSHELL_GATEWAY=one
OPENSHELL_GATEWAY_ENDPOINT=unix:/x
OPENSHELL_VERBOSE=2
OPENSHELL_WORKSPACE=ours"
}

@test "a wrong global option is a usage error that names it" {
    run -2 --separate-stderr openshell --gatway x sandbox list
    contains "$stderr" "'--gatway'"
    contains "$stderr" "'--gateway'"
    run -2 openshell --workspace
    contains "$output" "'--workspace' needs a value"
    run -2 openshell --workspace= sandbox list
    run -2 openshell --color=blue sandbox list
    contains "$output" "auto always never"
    run -2 openshell -x sandbox list
    contains "$output" "'-x'"
}

@test "names that are not built in are looked for on PATH: GROUP-VERB, then GROUP" {
    fake_commands extra openshell-thing openshell-thing-make openshell-sandbox-frobnicate \
        openshell-status openshell-gateway-list openshell-gateway
    PATH=$ROOT/extra:$PATH
    run openshell thing make it
    expect "$output" $'started: openshell-thing-make\nword: it'
    run openshell thing other it
    expect "$output" $'started: openshell-thing\nword: other\nword: it'
    run openshell -g one thing
    expect "$output" $'started: openshell-thing\nOPENSHELL_GATEWAY=one'
    run openshell sandbox frobnicate it
    expect "$output" $'started: openshell-sandbox-frobnicate\nword: it'
    # What is built in never comes from PATH.
    lacks "$(openshell status)" started
    lacks "$(openshell gateway list)" started
    run -2 openshell gateway nosuch
    lacks "$output" started
}

@test "a word with a slash never leaves the directories that are searched" {
    fake_commands extra openshell-thing
    mkdir "$ROOT/extra/openshell-a"
    cp "$ROOT/extra/openshell-thing" "$ROOT/extra/openshell-a/b"
    PATH=$ROOT/extra:$PATH run -2 openshell a/b
    lacks "$output" started
    PATH=$ROOT/extra:$PATH run -2 openshell '../extra/openshell-thing'
}

@test "an empty part of PATH is not the current directory" {
    fake_commands . openshell-thing
    PATH=:/usr/bin: run -2 "$PRODUCT/bin/openshell" thing
    lacks "$output" started
}

@test "a mistyped word gets a suggestion, and the code is 2" {
    run -2 --separate-stderr openshell sandbx list
    expect "$output" ""
    expect "$stderr" "openshell: 'sandbx' is not an openshell command; did you mean: openshell sandbox"
    run -2 openshell stauts
    contains "$output" "did you mean: openshell status"
    run -2 openshell sandbox lsit
    contains "$output" "did you mean: openshell sandbox list"
    run -2 openshell gateway strat
    contains "$output" "did you mean: openshell gateway start"
    run -2 openshell help sandbox creat
    contains "$output" "did you mean: openshell sandbox create"
    run -2 openshell xyzzy
    contains "$output" "see: openshell help"
    run -2 openshell ''
}

@test "a missing executable of a built-in command says what is wrong" {
    OPENSHELL_EXEC_PATH=$ROOT/nowhere run -1 openshell sandbox list
    contains "$output" "$ROOT/nowhere/openshell-sandbox-list"
    contains "$output" OPENSHELL_EXEC_PATH
}

@test "help names every group, and each group's help every verb" {
    local group text verb
    text=$(openshell help)
    for group in sandbox gateway status whoami; do
        contains "$text" "$group"
    done
    expect "$(openshell)" "$text"
    expect "$(openshell --help)" "$text"
    expect "$(openshell -h sandbox)" "$text"
    text=$(openshell help sandbox)
    for verb in create exec list get stop start delete; do
        contains "$text" "$verb"
    done
    expect "$(openshell sandbox)" "$text"
    expect "$(openshell sandbox --help)" "$text"
    expect "$(openshell sb -h)" "$text"
    expect "$(openshell sandbox help)" "$text"
}

@test "every command in the list has its executable, with help from its table" {
    local name words
    while read -r name; do
        words=${name#openshell-}
        words=${words/-/ }
        # shellcheck disable=SC2086 # words
        run -0 --separate-stderr openshell $words --help
        [[ ${lines[0]} == "usage: openshell $words"* ]]
        contains "$output" "--workspace NAME"
        # shellcheck disable=SC2086 # words
        expect "$(OPENSHELL_MAN_PATH=$ROOT openshell help $words)" "$output"
    done < <(find "$OPENSHELL_EXEC_PATH/" -name 'openshell-*-*' -printf '%f\n'
        echo openshell-status)
}

@test "help is no wider than 100 columns" {
    local words
    for words in '' sandbox gateway 'sandbox create' 'sandbox exec' 'sandbox list' status; do
        # shellcheck disable=SC2086 # words
        openshell $words --help | awk 'length > 100 { print; bad = 1 } END { exit bad }'
    done
}

@test "--version at every level" {
    local text
    text=$(openshell --version)
    [[ $text =~ ^openshell\ [0-9]+\.[0-9]+\.[0-9]+ ]]
    expect "$(openshell -V)" "$text"
    expect "$(openshell sandbox -V)" "$text"
    expect "$(openshell sandbox list --version)" "$text"
    expect "$(openshell status -V)" "$text"
}

@test "the front-end makes no file and no directory" {
    local before
    before=$(find "$ROOT" | sort)
    openshell --version >/dev/null
    openshell help >/dev/null
    openshell sandbox >/dev/null
    run openshell nosuch
    expect "$(find "$ROOT" | sort)" "$before"
}

@test "help that cannot be written is a failure" {
    [[ -e /dev/full ]] || skip "no /dev/full"
    run -1 eval 'openshell help >/dev/full'
    run -1 eval 'openshell --version >/dev/full'
}

@test "the front-end is static and small" {
    run "$PYTHON" - "$PRODUCT/bin/openshell" <<'END'
import struct, sys
data = open(sys.argv[1], 'rb').read()
offset, = struct.unpack_from('<Q', data, 32)
size, count = struct.unpack_from('<HH', data, 54)
kinds = [struct.unpack_from('<I', data, offset + i * size)[0] for i in range(count)]
print(3 in kinds, len(data) < 2000000)
END
    expect "$output" "False True"
}
