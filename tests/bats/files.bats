#!/usr/bin/env bats
# Files into and out of sandboxes: openshell sandbox upload and download.

load helper

setup()
{
    make_environment
    create s1
}

upload()
{
    openshell sandbox upload "$@"
}

download()
{
    openshell sandbox download "$@"
}

inside()
{
    openshell sandbox exec s1 --no-login-shell -- "$@"
}

# The names in a tree of the sandbox.
names_inside()
{
    inside sh -c 'cd "$1" && find . -mindepth 1 | cut -c 3- | LC_ALL=C sort' - "$1"
}

# What a tree holds, in a form that both sides can print: kind, permissions, name, target.
tree()
{
    (cd "$1" && LC_ALL=C find . -mindepth 1 -printf '%y %m %P %l\n' | LC_ALL=C sort)
}

tree_inside()
{
    inside sh -c 'cd "$1" && LC_ALL=C find . -mindepth 1 -printf "%y %m %P %l\n" | LC_ALL=C sort' - "$1"
}

# Names that a receiver made for itself while it worked.
leftovers()
{
    find "$ROOT" -name '.openshell-receive-*' -not -path "$STATE/*" -not -path "$RUN/*"
    inside find /sandbox -name '.openshell-receive-*'
}

@test "a file goes in and comes back, with its mode and time" {
    printf 'hello\n' >a.txt
    chmod 0750 a.txt
    touch -d '2001-02-03 04:05:06.123456789 UTC' a.txt
    run upload s1 a.txt
    expect "$status" 0
    expect "$output" ""
    expect "$(inside stat -c '%a %y' a.txt)" "$(stat -c '%a %y' a.txt)"
    download s1 a.txt back.txt
    cmp a.txt back.txt
    expect "$(stat -c '%a %y' back.txt)" "$(stat -c '%a %y' a.txt)"
}

@test "standard input goes in, standard output comes out" {
    printf 'one\0two' | upload s1 - dir/new
    expect "$(download s1 dir/new - | od -c)" "$(printf 'one\0two' | od -c)"
    run --separate-stderr upload s1 - dir/ </dev/null
    expect "$status" 2
    inside mkdir more
    run ! download s1 more -
}

@test "a file takes the name of its destination, or lands in the directory that it is" {
    echo new >m.txt
    inside sh -c 'mkdir w; echo old >a.cfg; chmod 600 a.cfg'
    upload s1 m.txt /sandbox/w/new.txt
    upload s1 ./m.txt /sandbox/no/such/new.txt
    upload s1 m.txt w/new/
    upload s1 m.txt w
    upload s1 m.txt /sandbox/a.cfg
    expect "$(inside stat -c %F w/new.txt no/such/new.txt w/new w/new/m.txt w/m.txt a.cfg)" \
        "$(printf '%s\n' 'regular file' 'regular file' directory 'regular file' 'regular file' 'regular file')"
    expect "$(inside cat a.cfg)" new
    mkdir there
    download s1 a.cfg there
    download s1 a.cfg made/
    download s1 a.cfg deep/er/name
    download s1 w/new.txt
    [[ -f there/a.cfg && -f made/a.cfg && -f deep/er/name && -f new.txt ]]
}

@test "a directory is wrapped in its name, and the contents of DIR/. are not" {
    mkdir -p foo/sub
    touch foo/f foo/sub/g
    local source dest
    for dest in dst dst/; do
        for source in ./foo ./foo/ "$PWD/foo" foo//; do
            inside rm -rf dst
            upload s1 "$source" "$dest"
            expect "$(names_inside dst)" "$(printf '%s\n' foo foo/f foo/sub foo/sub/g)"
        done
        for source in ./foo/. "$PWD/foo/sub/.."; do
            inside rm -rf dst
            upload s1 "$source" "$dest"
            expect "$(names_inside dst)" "$(printf '%s\n' f sub sub/g)"
        done
    done
    inside sh -c 'echo keep >dst/keep'
    (cd foo && upload s1 . dst)
    expect "$(inside cat dst/keep)" keep
    download s1 dst/sub out
    [[ -f out/g ]]
}

@test "links, hard links, empty and sparse files, and permissions arrive as they are" {
    mkdir -p t/real t/none t/shut
    echo x >t/real/x
    ln -s real t/to-directory
    ln -s real/x t/to-file
    ln -s /etc/passwd t/absolute
    ln -s nowhere t/dangling
    ln -s b t/a
    ln -s a t/b
    ln t/real/x t/hard
    : >t/empty
    truncate -s 100M t/sparse
    printf end >>t/sparse
    chmod 0500 t/none
    chmod 0640 t/empty
    upload s1 t
    expect "$(tree_inside t)" "$(tree t)"
    expect "$(inside stat -c %h t/hard)" 2
    (($(inside stat -c %b t/sparse) < 2048))
    download s1 t back
    expect "$(tree back)" "$(tree t)"
    expect "$(stat -c %h back/hard)" 2
    (($(stat -c %b back/sparse) < 2048))
    cmp t/sparse back/sparse
    chmod 0700 t/none back/none
}

@test "a source that is a link is kept as a link" {
    mkdir realdir
    touch realdir/f
    ln -s /nope dl
    ln -s realdir ld
    upload s1 dl
    upload s1 ld
    upload s1 ld/ through
    expect "$(inside readlink dl)" /nope
    expect "$(inside readlink ld)" realdir
    inside test -f through/ld/f
}

@test "names of every kind go both ways, alone and in a directory" {
    local names=('p[1].q' 'a*b' 'a?b' 'a b' ' lead' 'tr ' 'a:b' 'quote"' "it's" 'back\slash' "\$HOME"
        '~x' '{a,b}' $'t\tb' $'a\nb' -rf --checkpoint=1 '%41' $'\xf0\x9f\x98\x80' $'\xc3\xa9'
        $'e\xcc\x81' $'bad\xff' "$(printf '\xe6\xbc\xa2%.0s' {1..85})") name
    mkdir t
    for name in "${names[@]}"; do
        printf '%s' "$name" >"t/$name"
    done
    upload s1 t
    expect "$(inside find t -type f -printf x | wc -c)" "${#names[@]}"
    download s1 t back
    diff -r t back
    mkdir one
    for name in "${names[@]}"; do
        upload s1 "t/$name" "one/$name"
        download s1 "one/$name" one/
        cmp "t/$name" "one/$name"
    done
    expect "$(find one -type f -printf x)" "$(find t -type f -printf x)"
}

@test "a file never takes the place of a directory, nor a directory that of a file" {
    mkdir box
    echo keep >box/keep
    inside sh -c 'echo x >box; mkdir tub; echo keep >tub/keep; mkdir crate'
    run ! download s1 box .
    expect "$(cat box/keep)" keep
    echo x >tub
    run ! upload s1 tub .
    expect "$(inside cat tub/keep)" keep
    mkdir -p d/box
    run ! upload s1 d/. .
    contains "$output" box
    expect "$(inside cat box)" x
    echo x >crate
    run ! download s1 crate crate
    expect "$(cat crate)" x
}

@test "every refusal ends with an exit code that is not 0" {
    echo x >f
    inside sh -c 'echo x >f; ln -s /etc l; echo x >shut; chmod 0 shut; mkfifo p'
    run ! download s1 /etc/passwd
    contains "$output" outside
    run ! download s1 ../etc/passwd
    run ! download s1 l/passwd
    run ! download s1 l
    run ! download s1 missing
    contains "$output" missing
    run ! download s1 p
    run ! download nobody f
    contains "$output" "there is no sandbox 'nobody'"
    run ! upload nobody f
    run ! upload s1 missing
    contains "$output" missing
    run ! upload s1 f /usr/bin/f
    run ! upload s1 f /proc/f
    run ! download s1 f /proc/none/f
    run ! download s1 f f/
    if ((EUID != 0)); then
        run ! download s1 shut
    fi
    [[ ! -e passwd && ! -e l && ! -e missing && ! -e p ]]
}

@test "a destination of this machine may lie behind a link that the user names" {
    inside sh -c 'echo x >f'
    mkdir real
    ln -s real lnk
    download s1 f "$PWD/lnk/f"
    download s1 f lnk/g
    download s1 f lnk/
    expect "$(ls real)" "$(printf 'f\ng')"
    [[ -L lnk ]]
}

@test "an upload does not write through a link that is planted in the sandbox" {
    mkdir -p t/x
    echo evil >t/x/evil
    inside sh -c 'mkdir -p out t; ln -s ../out t/x; echo old >victim; ln -s victim t2'
    run ! upload s1 t
    contains "$output" x
    expect "$(inside ls out)" ""
    echo new >t2
    upload s1 t2 t2
    expect "$(inside cat victim)" old
    run ! upload s1 t2 t/x/file
    run ! upload s1 t2 t/x/
    expect "$(inside ls out)" ""
}

@test "a second copy with files where links were stays in its destination" {
    mkdir -p first second/y second/x
    ln -s /etc first/x
    ln -s ../../.. first/y
    echo evil >second/x/evil
    echo evil >second/y/evil
    upload s1 first/. d
    run ! upload s1 second/. d
    expect "$(inside readlink d/x d/y)" "$(printf '/etc\n../../..')"
    run ! inside test -e /etc/evil
    download s1 d d
    inside sh -c 'rm d/x d/y; mkdir d/x d/y; echo evil >d/x/evil; echo evil >d/y/evil'
    run ! download s1 d d
    [[ ! -e /etc/evil && ! -e evil ]]
}

@test "a directory that becomes a link while it is read leaks nothing" {
    inside sh -c 'mkdir -p t/d; for i in $(seq 2000); do echo $i >t/d/passwd$i; done; echo x >t/d/passwd'
    openshell sandbox exec s1 --no-login-shell -- sh -c \
        'while :; do mv t/d t/e; ln -s /etc t/d; rm t/d; mv t/e t/d; done' >/dev/null 2>&1 3>&- &
    local swapper=$! i
    for i in 1 2 3; do
        download s1 t "back$i" 2>/dev/null || true
    done
    kill "$swapper"
    run ! grep -rs root: back1 back2 back3
}

@test "what git ignores stays behind" {
    git init -q d
    printf 'runs/\n*.o\n' >d/.gitignore
    mkdir -p d/runs d/src
    touch d/runs/t.json d/src/a.c d/src/a.o
    git -C d add .gitignore src/a.c
    touch d/src/new.c
    git -C d rm -q --cached src/a.c
    upload s1 d
    expect "$(names_inside d)" "$(printf '%s\n' .gitignore src src/a.c src/new.c)"
    upload s1 --no-git-ignore d all
    inside test -f all/d/runs/t.json -a -d all/d/.git
    run ! upload s1 d/runs
    contains "$output" "git ignores everything"
    run ! inside test -e runs
    upload s1 d/runs/t.json
    inside test -f t.json
    upload s1 d/src/. sources
    expect "$(inside ls sources)" "$(printf 'a.c\nnew.c')"
}

@test "a file in a git work tree follows the same rule as any other" {
    mkdir plain
    git init -q repo
    local directory
    for directory in plain repo; do
        echo x >"$directory/src.json"
        upload s1 "$directory/src.json" "/sandbox/out/$directory.json"
        expect "$(inside stat -c %F "out/$directory.json")" "regular file"
    done
    git -C repo add src.json
    upload s1 repo/src.json /sandbox/out/tracked.json
    expect "$(inside stat -c %F out/tracked.json)" "regular file"
}

@test "a work tree that git cannot read stops the upload" {
    mkdir -p d/.git
    touch d/f
    run ! upload s1 d
    contains "$output" --no-git-ignore
    run ! inside test -e d
    upload s1 --no-git-ignore d
    inside test -f d/f
}

@test "what cannot be sent is named, and the rest arrives" {
    mkdir t
    echo a >t/a
    echo z >t/z
    mkfifo t/p
    "$PYTHON" -c 'import socket; socket.socket(socket.AF_UNIX).bind("t/s")'
    local left=(p s)
    if ((EUID != 0)); then
        mkdir -m 000 t/m
        left+=(m)
    fi
    LIMIT=20 run upload s1 t
    expect "$status" 1
    for name in "${left[@]}"; do
        contains "$output" "t/$name: "
    done
    expect "$(inside cat t/a t/z)" "$(printf 'a\nz')"
}

@test "a large file goes both ways unchanged" {
    head -c 300000000 /dev/urandom >big
    local sum
    sum=$(sha256sum <big)
    upload s1 big sub/big
    expect "$(inside sha256sum sub/big)" "${sum%-}sub/big"
    download s1 sub/big back
    expect "$(sha256sum <back)" "$sum"
    run leftovers
    expect "$output" ""
}

@test "an upload that is interrupted leaves nothing behind" {
    mkdir many
    (cd many && for i in {1..40}; do head -c 20000000 /dev/urandom >"$i"; done)
    expect "$(interrupted 600 INT "$PRODUCT/bin/openshell" sandbox upload s1 many d/many)" 130
    wait_for 10 gone_inside
    expect "$(interrupted 600 KILL "$PRODUCT/bin/openshell" sandbox upload s1 many d/many)" 137
    wait_for 10 gone_inside
}

gone_inside()
{
    [[ -z $(inside find /sandbox -mindepth 1 -not -name d) ]]
}

@test "a download that is interrupted leaves nothing behind" {
    inside sh -c 'mkdir many; for i in $(seq 40); do head -c 20000000 /dev/urandom >many/$i; done'
    expect "$(interrupted 600 TERM "$PRODUCT/bin/openshell" sandbox download s1 many out)" 143
    [[ ! -e out ]]
    expect "$(interrupted 600 KILL "$PRODUCT/bin/openshell" sandbox download s1 many out)" 137
    wait_for 10 test ! -e out
}

@test "a sandbox that ends in the middle ends the copy with an error" {
    inside sh -c 'head -c 800000000 /dev/zero | tr "\0" x >big'
    download s1 big big 3>&- &
    local copy=$!
    wait_for 10 staged
    openshell sandbox stop s1
    run ! wait "$copy"
    [[ ! -e big ]]
    run find . -maxdepth 1 -name '.openshell-receive-*'
    expect "$output" ""
}

staged()
{
    compgen -G '.openshell-receive-*' >/dev/null
}

@test "a copy needs neither a shell nor tar in the sandbox" {
    mkdir -p root/bin
    cp "$PRODUCT/bin/openshell" root/bin/only # a static program, which ends at once
    mkdir t
    echo x >t/f
    openshell sandbox create --name bare --from root -- /bin/only --version >/dev/null
    run ! openshell sandbox exec bare --no-login-shell -- sh -c true
    run ! openshell sandbox exec bare --no-login-shell -- tar --version
    upload bare t
    download bare t back
    expect "$(cat back/f)" x
}

@test "the progress is for terminals alone" {
    echo x >f
    run upload s1 f
    expect "$output" ""
    run script -qec "$PRODUCT/bin/openshell sandbox upload s1 f g" /dev/null </dev/null
    contains "$output" "uploaded 'f'"
}
