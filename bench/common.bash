# shellcheck shell=bash
# shellcheck disable=SC2034 # the measurements use what is set here
# What the measurements have in common: the product of build/installed with directories of its own,
# a stopwatch, and rows that show both sides and their ratio. Sourced by bench/front-end, bench/exec
# and bench/create.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
PRODUCT=${OPENSHELL_TEST_PRODUCT:-$PWD/build/installed}
STOPWATCH=$PWD/build/bench/stopwatch
RUNS=${RUNS:-50}
OPENSHELL=$PRODUCT/bin/openshell

[[ -x $OPENSHELL ]] || {
    echo "${0##*/}: $OPENSHELL is not there; run ./quickstart first" >&2
    exit 1
}
make -C build -s bench/stopwatch || exit 1

PLACE=$(mktemp -d /tmp/openshell-bench.XXXXXX)
mkdir -m 0700 "$PLACE"/{home,config,state,run}
export HOME=$PLACE/home XDG_CONFIG_HOME=$PLACE/config XDG_STATE_HOME=$PLACE/state
export XDG_RUNTIME_DIR=$PLACE/run OPENSHELL_RUN_DIR=$PLACE/run/openshell
export OPENSHELL_EXEC_PATH=$PRODUCT/libexec/openshell

finish()
{
    "$OPENSHELL" gateway stop --stop-sandboxes >/dev/null 2>&1
    podman_end
    chmod -R u+rwX "$PLACE"
    rm -rf "$PLACE"
}
trap finish EXIT

# timed [stopwatch option...] -- command...: sets MEDIAN, P90, MINIMUM and RATE.
timed()
{
    local failures
    read -r MEDIAN P90 MINIMUM RATE failures < <("$STOPWATCH" "$@")
    if [[ ${failures:-all} != 0 ]]; then
        echo "  $failures runs failed: ${*: -6}" >&2
    fi
}

heading()
{
    printf '%s, %s, %s cores, %s\n\n' "$(uname -sr)" \
        "$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" "$(nproc)" "$(date +%F)"
    printf '%-52s %11s %11s %8s  %s\n' work ours other ratio reach
}

# row WORK OURS OTHER UNIT REACH: OTHER may be "-"
row()
{
    local ratio=-
    if [[ $3 != - ]]; then
        ratio=$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", a / b }')
    fi
    printf '%-52s %11s %11s %8s  %s\n' "$1" "$2 $4" "$([[ $3 == - ]] || echo "$3 $4")" "$ratio" "$5"
}

# --- what there is to compare with ----------------------------------------------------------

# The floor: one process in new namespaces. Sets FLOOR, or "-". Measured again next to what is
# compared with it, since the machine is not as quiet at all times.
measure_floor()
{
    FLOOR=-
    if command -v bwrap >/dev/null; then
        timed -n "$RUNS" -- bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc true
        FLOOR=$MEDIAN
    else
        echo "(bwrap is not installed: no floor)"
    fi
}

measure_empty()
{
    timed -n $((RUNS * 4)) -- /bin/true
    EMPTY=$MEDIAN
}

# podman on a root of a few files, in a mount namespace without the cgroup hierarchy that keeps it
# from starting on some machines. Says why when it cannot run.
podman_begin()
{
    local root=$PLACE/podman-image file
    PODMAN=()
    if ((EUID != 0)) || ! command -v podman >/dev/null; then
        echo "(podman is compared with as root, where it is installed)"
        return
    fi
    mkdir -p "$root/bin"
    for file in /bin/true /bin/sh /bin/sleep; do
        cp "$file" "$root/bin/"
        ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
    cat >"$PLACE/podman" <<EOF
#!/bin/sh
exec podman --root $PLACE/podman-root --runroot $PLACE/podman-run --tmpdir $PLACE/podman-tmp \\
    --cgroup-manager cgroupfs --events-backend none "\$@"
EOF
    chmod +x "$PLACE/podman"
    # One namespace for all of podman's commands.
    unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec sleep 86400' &
    PODMAN_HOLDER=$!
    sleep 0.2
    PODMAN=(nsenter -m -t "$PODMAN_HOLDER" "$PLACE/podman")
    LIMITS=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1000:1000)
    if ! tar -C "$root" -c . | "${PODMAN[@]}" import - small >/dev/null 2>"$PLACE/podman-error" ||
        ! "${PODMAN[@]}" run --rm "${LIMITS[@]}" small /bin/true 2>"$PLACE/podman-error"; then
        echo "(podman does not run here: $(tail -n 1 "$PLACE/podman-error"))"
        PODMAN=()
    fi
}

podman_end()
{
    if [[ -n ${PODMAN_HOLDER:-} ]]; then
        if ((${#PODMAN[@]})); then
            "${PODMAN[@]}" rm -af -t 0 >/dev/null 2>&1
        fi
        kill "$PODMAN_HOLDER" 2>/dev/null
        umount -R "$PLACE/podman-root/overlay" 2>/dev/null
    fi
}

# Proportional set size of processes, in KiB.
pss()
{
    local pid
    for pid in "$@"; do
        awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup" 2>/dev/null
    done | awk '{ n += $1 } END { print n + 0 }'
}
