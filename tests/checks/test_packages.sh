#!/bin/bash
# .ci/packages.sh with a fake dpkg-query and apt-get: installs only missing packages, upgrades none by name, and lists
# those that dependencies upgrade.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
mkdir "$work/bin"
printf '#!/bin/sh\necho 0\n' >"$work/bin/id"
# Every package is installed except those in $MISSING.
cat >"$work/bin/dpkg-query" <<'END'
#!/bin/bash
[[ " $MISSING " == *" ${!#} "* ]] && exit 1
echo installed
END
cat >"$work/bin/apt-get" <<'END'
#!/bin/bash
echo "apt-get $*" >>"$CALLS"
[[ " $* " == *" -s "* ]] && cat "$SIMULATED"
exit 0
END
chmod +x "$work"/bin/*
export CALLS=$work/calls SIMULATED=$work/simulated

# packages MISSING SIMULATED...: runs the script with these packages missing; apt-get -s prints the lines SIMULATED.
packages() {
    export MISSING=$1
    shift
    : >"$CALLS"
    printf '%s\n' "$@" >"$SIMULATED"
    PATH="$work/bin:$PATH" bash "$here/../../.ci/packages.sh" build >"$work/out" 2>&1 || fault "exit status $?"
}
fault() {
    failed=$((failed + 1))
    echo "FAIL: $*"
    sed 's/^/    /' "$work/out" "$CALLS"
}
has() { grep -qF -- "$2" "$1" || fault "lacks: $2"; }
lacks() { ! grep -qF -- "$2" "$1" || fault "has: $2"; }

packages ""
[ ! -s "$CALLS" ] || fault "apt-get is called with nothing to install"

packages "ninja-build zlib1g-dev" "Inst ninja-build (1.11.1-2 Debian:12/stable [amd64])" \
    "Inst zlib1g [1:1.2.13-1] (1:1.2.13-2 Debian:12/stable [amd64]) []" \
    "Inst zlib1g-dev (1:1.2.13-2 Debian:12/stable [amd64])" "Conf ninja-build (1.11.1-2 Debian:12/stable [amd64])"
has "$CALLS" "--no-upgrade ninja-build zlib1g-dev"
lacks "$CALLS" cmake
lacks "$CALLS" "apt-get upgrade"
has "$work/out" "Installing: ninja-build zlib1g-dev"
has "$work/out" "packages.sh: dependencies upgrade these installed packages: zlib1g (1:1.2.13-1 to 1:1.2.13-2)"

packages "ninja-build" "Inst ninja-build (1.11.1-2 Debian:12/stable [amd64])"
lacks "$work/out" "upgrade these"

echo "$failed failed"
[ "$failed" -eq 0 ]
