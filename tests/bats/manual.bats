#!/usr/bin/env bats
# The manual: help opens it, and its examples do what they say. tests/check/manual compares pages
# and commands.

load helper

# A man that prints how it was started.
fake_man()
{
    mkdir -p "$ROOT/fake"
    printf '#!/bin/sh\necho "man $*"\necho "MANPATH=$MANPATH"\n' >"$ROOT/fake/man"
    chmod +x "$ROOT/fake/man"
    PATH=$ROOT/fake:$PATH
}

@test "help of a command opens its page with man" {
    fake_man
    run -0 openshell help sandbox create
    expect "$output" "man 1 openshell-sandbox-create
MANPATH=$PRODUCT/share/man:"
    expect "$(openshell sandbox help create)" "$output"
    expect "$(openshell help sb create)" "$output"
    expect "$(openshell help status | head -n 1)" "man 1 openshell-status"
}

@test "help opens the other pages by the rest of their names" {
    fake_man
    expect "$(openshell help config | head -n 1)" "man 5 openshell-config"
    expect "$(openshell help supervisor | head -n 1)" "man 8 openshell-supervisor"
    expect "$(openshell help openshell | head -n 1)" "man 1 openshell"
    run -2 openshell help nosuch
    run -2 openshell help ../config
    run -2 openshell help config more
    run -2 openshell help sandbox nosuch
}

@test "help of a group, and help alone, are printed" {
    fake_man
    contains "$(openshell help gateway)" "usage: openshell gateway VERB"
    contains "$(openshell help)" "usage: openshell [OPTIONS] GROUP VERB"
}

@test "without man, or without the page, help prints what --help prints" {
    local text
    text=$(openshell sandbox create --help)
    contains "$text" "usage: openshell sandbox create"
    expect "$(PATH=$ROOT/nowhere "$PRODUCT/bin/openshell" help sandbox create)" "$text"
    expect "$(OPENSHELL_MAN_PATH=$ROOT openshell help sandbox create)" "$text"
}

@test "a page that was compressed is found" {
    fake_man
    mkdir -p "$ROOT/man/man1"
    gzip -c "$PRODUCT/share/man/man1/openshell-status.1" >"$ROOT/man/man1/openshell-status.1.gz"
    OPENSHELL_MAN_PATH=$ROOT/man run -0 openshell help status
    contains "$output" "man 1 openshell-status"
}

@test "man itself shows the page" {
    command -v man || skip "man is not installed"
    run -0 openshell help sandbox exec
    contains "$output" "openshell-sandbox-exec - run a program in a sandbox that exists"
    contains "$output" "--keep-running"
}

# The examples of a page, each a line as typed.
examples_of()
{
    mandoc -T utf8 -O width=300 "$1" | sed 's/.\x08//g' |
        awk '/^[^ ]/ { on = /^EXAMPLES/ } on && /^           / { sub(/^ +/, ""); print }'
}

# What a page takes for granted: a sandbox named demo, and files.
prepare()
{
    openshell gateway select openshell 2>/dev/null
    openshell sandbox delete --all >/dev/null
    [[ $1 == *sandbox-create* ]] || openshell sandbox create --name demo --detach >/dev/null
    mkdir "$ROOT/example"
    cd "$ROOT/example" || return 1
}

# Examples that are not for here: what stays in front or follows for ever, and what is for another
# shell.
is_left_out()
{
    [[ $1 == *openshell-gateway' '--* || $1 == *--tail* || $1 == 'source <(openshell completions zsh)' ]]
}

run_examples()
{
    local line count=0
    while read -r line; do
        is_left_out "$line" && continue
        if ! bash -ec -o pipefail "$line" <"${INPUT:-/dev/null}" >"$ROOT/output" 2>&1; then
            echo "${1##*/}: this example fails: $line"
            cat "$ROOT/output"
            return 1
        fi
        count=$((count + 1))
    done < <(examples_of "$1")
    echo "${1##*/}: $count examples"
}

@test "every example of the manual does what it says" {
    command -v mandoc || skip "mandoc is not installed"
    local page pages=0
    for page in "$PRODUCT"/share/man/man?/*; do
        prepare "$page"
        run_examples "$page"
        cd "$ROOT"
        rm -rf "$ROOT/example"
        pages=$((pages + 1))
    done
    ((pages >= 19))
}
