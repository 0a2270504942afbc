# shellcheck shell=bash
# What quickstart and runtests have in common: the Debian packages and the build. Sourced with the
# top of the source tree as the working directory.

say()
{
    printf '\n== %s\n' "$*"
}

give_up()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Names of one list of tools/packages.txt.
packages_of()
{
    awk -v list="[$1]" '/^\[/ { inside = ($0 == list); next } inside && NF && !/^#/ { print $1 }' \
        tools/packages.txt
}

# Those of the packages named that are not installed.
missing_packages()
{
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            printf '%s\n' "$package"
    done
}

# Installs what is missing of the lists named, or says how and ends.
need_packages()
{
    local list missing=() command
    if ! command -v dpkg-query >/dev/null; then
        echo "This is not Debian: the packages of tools/packages.txt are not checked."
        return
    fi
    for list in "$@"; do
        mapfile -t -O "${#missing[@]}" missing < <(packages_of "$list")
    done
    mapfile -t missing < <(missing_packages "${missing[@]}")
    if ((${#missing[@]} == 0)); then
        return
    fi
    command="apt-get install -y --no-install-recommends ${missing[*]}"
    if ((EUID == 0)); then
        sudo=()
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo=(sudo -n)
    else
        give_up "these packages are missing and installing them needs root; as root, run:
    $command"
    fi
    say "Installing: ${missing[*]}"
    "${sudo[@]}" apt-get update -q || give_up "apt-get update failed"
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "${missing[@]}" ||
        give_up "apt-get could not install what is missing; as root, try: $command"
}

# build_tree DIRECTORY TARGET [configure option...]: configures DIRECTORY if that was not done
# yet and makes TARGET in it.
build_tree()
{
    local directory=$1 target=$2 jobs
    shift 2
    jobs=$(nproc)
    if [[ -e config.status ]]; then
        give_up "this source tree was configured in place; run 'make distclean' first"
    fi
    if [[ ! -x configure || ! -e Makefile.in ]]; then
        autoreconf -fi || give_up "autoreconf failed"
    fi
    mkdir -p "$directory"
    if [[ ! -e $directory/Makefile ]]; then
        (cd "$directory" && ../configure -q "$@") || give_up "configure failed in $directory"
    fi
    make -C "$directory" -s -j "$jobs" "$target" || give_up "make $target failed in $directory"
}

# The build that people run: in build/, installed below build/installed, so that it runs from
# there without any variable.
build_product()
{
    build_tree build all --prefix="$PWD/build/installed"
    make -C build -s install >build/install.log 2>&1 || {
        cat build/install.log >&2
        give_up "make install failed in build"
    }
}
