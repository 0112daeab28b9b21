#!/bin/bash
# Tests the files of "make release" on machines that have nothing: unpacks the archive and installs the wheel in a root
# with only libc and Python, made of Debian packages (which are downloaded), and runs them there without root.
#
# Usage: tests/release/try_release.sh [--debootstrap] [FOLDER]: the folder with the files, build/release-files.
# --debootstrap: also a bare Debian 12 root (minbase).
set -eu
cd "$(dirname "$0")/../.."
if [ "${1:-}" != --in-namespace ]; then
    # Mounts end with the namespace. Without root a user namespace allows them.
    options=(--mount)
    [ "$(id -u)" -eq 0 ] || options+=(--map-root-user)
    exec unshare "${options[@]}" "$0" --in-namespace "$@"
fi
shift
debootstrap=no
[ "${1:-}" != --debootstrap ] || { debootstrap=yes; shift; }
files=$(cd "${1:-build/release-files}" && pwd)
work=$PWD/build/try-release
cache=$work/packages
chroot=$(command -v chroot)
user=() # a user without rights, unless this namespace has only one user
[ "$(awk '{print $3}' /proc/self/uid_map)" = 1 ] || user=(--userspec=65534:65534)

fail() {
    echo "FAIL: $*"
    exit 1
}

# packages NAME...: downloads them once.
packages() {
    mkdir -p "$cache"
    for package in "$@"; do
        ls "$cache/${package}"_*.deb >/dev/null 2>&1 ||
            (cd "$cache" && apt-get download -q -o APT::Sandbox::User="$(id -un)" "$package" >/dev/null)
    done
}

# prepare ROOT: mounts what a running system has, and adds the release and a dataset.
prepare() {
    local root=$1
    mkdir -p "$root"/{proc,dev,tmp,release,data}
    chmod 1777 "$root/tmp"
    mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    cp "$files"/* "$root/release"
    tar -xzf "$files"/weir-*-linux-x86_64.tar.gz -C "$root/release"
    cp -r "${data[@]}" "$root/data"
    chmod -R a+rX "$root/data" "$root/release"
}

# in_root ROOT COMMAND...: as a user without root. authority: the file of trusted certificates, if any.
in_root() {
    env -i PATH=/usr/bin:/bin LANG=C.UTF-8 ${authority:+CURL_CA_BUNDLE=$authority} "$chroot" "${user[@]}" "$@"
}

# try WHERE ROOT PROGRAM: the four commands, on every dataset.
try() {
    local where=$1 root=$2 program=$3 log=$work/log name
    in_root "$root" "$program" doctor >"$log" 2>&1 || { cat "$log"; fail "$where: doctor fails"; }
    grep -q "^  hdf5  *yes" "$log" || { cat "$log"; fail "$where: doctor finds no HDF5"; }
    grep -q "^  cuda module  *$cuda_module" "$log" || { cat "$log"; fail "$where: the CUDA module is not '$cuda_module'"; }
    for name in "$root"/data/*; do
        name=/data/$(basename "$name")
        [[ $name != *.json* ]] || continue
        in_root "$root" "$program" info "$name" >"$log" 2>&1 || { cat "$log"; fail "$where: info $name fails"; }
        in_root "$root" "$program" run "$name" --log /tmp/run.jsonl --num-epochs 2 >"$log" 2>&1 ||
            { cat "$log"; fail "$where: run $name fails"; }
        grep -q "03b_image_decode\|03c_read_bytes" "$log" || { cat "$log"; fail "$where: run $name prints no table"; }
        in_root "$root" "$program" report /tmp/run.jsonl >"$log" 2>&1 || { cat "$log"; fail "$where: report fails"; }
        grep -q "03b_image_decode\|03c_read_bytes" "$log" || { cat "$log"; fail "$where: report prints no table"; }
        rm -f "$root/tmp/run.jsonl"
    done
    for name in "$root"/data/*.json*; do
        [ -f "$name" ] || continue
        in_root "$root" "$program" report "/data/$(basename "$name")" >"$log" 2>&1 ||
            { cat "$log"; fail "$where: report of a trace fails"; }
    done
    echo "ok: $where: $(in_root "$root" "$program" --version | head -1)"
}

# try_https WHERE ROOT PROGRAM: a dataset of a server, with TLS; and without a file of certificates.
try_https() {
    local where=$1 root=$2 program=$3 log=$work/log authority=
    [ -n "$url" ] || return 0
    if in_root "$root" "$program" run "$url/one.weir" >"$log" 2>&1; then fail "$where: any certificate is trusted"; fi
    grep -q "the server's certificate is not trusted" "$log" || { cat "$log"; fail "$where: another error"; }
    cp "$work/tls/certificate" "$root/release/authority.pem"
    chmod a+r "$root/release/authority.pem"
    authority=/release/authority.pem
    in_root "$root" "$program" run "$url/one.weir" >"$log" 2>&1 || { cat "$log"; fail "$where: run $url fails"; }
    grep -q "^server: [1-9]" "$log" || { cat "$log"; fail "$where: no line about the server"; }
    echo "ok: $where: https"
}

rm -rf "$work"/{root-*,sample,served,tls,url}
mkdir -p "$work"
echo "-- checksums, contents, licences"
(cd "$files" && sha256sum --quiet -c SHA256SUMS)
[ -x build/release-venv/bin/pyspdxtools ] || {
    python3 -m venv build/release-venv && build/release-venv/bin/pip install --quiet --disable-pip-version-check spdx-tools
} || echo "spdx-tools cannot be installed"
python3 tests/release/check_archive.py "$files"/weir-*-linux-x86_64.tar.gz "$files"/weir-*.spdx.json "$files"/*.whl

cuda_module=no
if tar -tzf "$files"/weir-*-linux-x86_64.tar.gz | grep -q libweir_cuda; then
    cuda_module=yes
fi

rm -rf "$work"/weir-*
tar -xzf "$files"/weir-*-linux-x86_64.tar.gz -C "$work"
local_program=$(echo "$work"/weir-*/bin/weir)

shared=${WEIR_DATA:-../shared/data}
if [ -d "$shared/episodes" ]; then
    data=("$shared"/episodes/* "$shared"/tfrecord/* "$shared"/traces/*.json*)
else
    echo "no $shared: trying a synthetic dataset only"
    "$local_program" synth "$work/sample" --episodes 3 --steps 8 --size 64x48 >/dev/null
    data=("$work/sample")
fi

mkdir -p "$work/tls" "$work/served"
"$local_program" synth "$work/served/one" --episodes 3 --steps 8 --size 64x48 >/dev/null
"$local_program" convert "$work/served/one" "$work/served/one.weir" --to packed >/dev/null
exec 9> >(exec python3 tests/origin/http_server.py "$work/served" "$work/tls" >"$work/url") # ends with this script
for _ in $(seq 100); do
    [ ! -s "$work/url" ] || break
    sleep 0.1
done
url=$(cat "$work/url")
[ -n "$url" ] || echo "no openssl: https is not tried"

echo "-- only libc: the archive"
packages libc6
dpkg-deb -x "$cache"/libc6_*.deb "$work/root-libc"
prepare "$work/root-libc"
program=$(cd "$work/root-libc" && echo release/weir-*-linux-x86_64/bin/weir)
try "archive, only libc" "$work/root-libc" "/$program"
try_https "archive, only libc" "$work/root-libc" "/$program"

echo "-- only libc and Python: the wheel"
python=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib python3.11 python3.11-venv python3-distutils
    python3-pip-whl python3-setuptools-whl libexpat1 zlib1g libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1)
packages "${python[@]}"
for package in libc6 "${python[@]}"; do
    dpkg-deb -x "$cache/${package}"_*.deb "$work/root-python"
done
prepare "$work/root-python"
in_root "$work/root-python" /usr/bin/python3.11 -m venv /tmp/venv
wheel=$(cd "$files" && echo *.whl)
in_root "$work/root-python" /tmp/venv/bin/python -m pip install --quiet --no-index --disable-pip-version-check "/release/$wheel"
try "wheel, only libc and Python" "$work/root-python" /tmp/venv/bin/weir
try_https "wheel, only libc and Python" "$work/root-python" /tmp/venv/bin/weir
first=$(cd "$work/root-python/data" && find . -maxdepth 1 -not -name '*.json*' -not -name . | sort | head -1)
in_root "$work/root-python" /tmp/venv/bin/python -c "import sys, weir
batches = sum(1 for batch in weir.Loader(sys.argv[1]))
assert batches > 0
print('ok: weir.Loader', weir.__version__, batches, 'batches')" "/data/$first"

if [ $debootstrap = yes ]; then
    echo "-- a bare Debian 12"
    debootstrap --variant=minbase bookworm "$work/root-bare" >"$work/log" 2>&1 || { tail "$work/log"; fail debootstrap; }
    umount -R "$work/root-bare/proc" 2>/dev/null || true
    prepare "$work/root-bare"
    try "archive, bare Debian 12" "$work/root-bare" "/$program"
fi
echo "0 failures"
