# shellcheck shell=bash
# What the tests of the boundary have in common. They use the process-maker alone, through
# isolation-shell: no gateway, no supervisor.
#
# ISOLATION_PROGRAMS   where isolation-shell and isolation-attempts are
# TMPDIR               where directories are made

bats_require_minimum_version 1.5.0

SHELL_PROGRAM=$ISOLATION_PROGRAMS/isolation-shell
# shellcheck disable=SC2034 # for the tests
ATTEMPTS=$ISOLATION_PROGRAMS/isolation-attempts

setup()
{
    ROOT=$(mktemp -d "$TMPDIR/is.XXXXXX")
    # shellcheck disable=SC2034 # for the tests
    STATE=$ROOT/state
}

teardown()
{
    local left
    left=$(processes_below "$ROOT")
    rm -rf "$ROOT"
    if [[ -n $left ]]; then
        echo "processes of the sandbox are left: $left"
        return 1
    fi
    ! is_mounted "$ROOT"
}

# Processes with a mount of something below a directory: those of its sandbox.
processes_below()
{
    grep -lsF "/${1##*/}/" /proc/[0-9]*/mountinfo | sed 's|^/proc/||; s|/mountinfo$||' || :
}

is_mounted()
{
    grep -qF "$1" /proc/self/mountinfo
}

# sandbox OPTION... -- COMMAND...: one sandbox, with this test's state.
sandbox()
{
    timeout --kill-after=5 "${LIMIT:-60}" "$SHELL_PROGRAM" --state "$STATE" \
        --cache "$BATS_FILE_TMPDIR/cache" "$@" 3>&-
}

# inside SCRIPT [OPTION...]: runs a script as an exec, without a login shell.
inside()
{
    local script=$1
    shift
    sandbox --exec "$@" -- sh -c "$script"
}

# outside: puts a program into the sandbox's home, which is made by a first run.
bring()
{
    [[ -d $STATE/sandbox ]] || sandbox -- true
    cp "$1" "$STATE/sandbox/"
    chmod 0755 "$STATE/sandbox/${1##*/}"
}

is_root()
{
    ((EUID == 0))
}

need_command()
{
    [[ -x /usr/bin/$1 ]] || skip "$1 is not installed"
}

# Waits until a command succeeds, at most 10 s.
eventually()
{
    local end=$((SECONDS + 10))
    until "$@"; do
        ((SECONDS < end)) || return 1
        read -rt 0.05 <> <(:) || :
    done
}
