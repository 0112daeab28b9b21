#!/bin/bash
# Makes the files of a release in build/release-files ("make release"): an archive with the program for any x86-64 Linux
# with glibc 2.28 or later, the wheel, the source, an SPDX list of what is linked in, and SHA256SUMS. Two runs on the
# same commit and the same Debian packages give equal files; docs/internals/release.md says how.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC0
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain)" ] || { echo "release.sh: uncommitted changes; commit them first" >&2; exit 1; }
version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
build=build/python-wheel to=build/release-files name=weir-$version-linux-x86_64
stage=$build/stage/$name

# pack FOLDER_BESIDE FOLDER ARCHIVE
pack() {
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+w,go+rX,go-w \
        --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -c "$2" | gzip -9n >"$3"
}

# The wheel's build makes the archive's files too.
.ci/hdf5.sh build/hdf5
.ci/dav1d.sh build/dav1d
.ci/microhttpd.sh build/microhttpd
.ci/curl.sh build/curl
.ci/glibc.sh build/glibc
rm -rf $to $build/stage
mkdir -p $to
wheel=$(.ci/wheel.sh | tail -1)
cp "$wheel" $to
DESTDIR='' cmake --install $build --component Unspecified --prefix "$stage" >/dev/null
cp README.md CHANGELOG.md LICENSE "$stage"
# weir.watch for any Python: the package without its extension, which needs 3.11.
mkdir -p "$stage/python/weir"
cp python/weir/*.py $build/python/weir/__init__.pyi python/weir/py.typed $build/python/weir/libweir_watch.so "$stage/python/weir"
[ -f $build/libweir_cuda.so ] || echo "release.sh: no CUDA Toolkit: this release has no CUDA module" >&2
strip --strip-debug "$stage"/bin/*
find "$stage" -name '*.so' -exec strip --strip-unneeded {} +
.ci/linked.py --licenses "$stage/licenses" $build/maps
pack $build/stage "$name" "$to/$name.tar.gz"
git archive --format=tar --prefix="weir-$version/" HEAD | gzip -9n >"$to/weir-$version-source.tar.gz"

# What is linked into each file, as it is in the archive and in the wheel.
python3 -m zipfile -e "$wheel" $build/stage/wheel
files=()
list() { # list NAME FILE TARGET, if there is such a file
    [ ! -f "$2" ] || files+=("$1=$2=$build/maps/$3.map")
}
list bin/weir "$stage/bin/weir" weir
list bin/weir-hdf5 "$stage/bin/weir-hdf5" weir_hdf5_program
list lib/libweir_cuda.so "$stage/lib/libweir_cuda.so" weir_cuda
list python/weir/libweir_watch.so "$stage/python/weir/libweir_watch.so" weir_watch
list wheel/weir/libweir_watch.so $build/stage/wheel/weir/libweir_watch.so weir_watch
list wheel/weir/_weir.abi3.so $build/stage/wheel/weir/_weir.abi3.so weir_python
list wheel/weir/weir-hdf5 $build/stage/wheel/weir/weir-hdf5 weir_hdf5_program
list wheel/weir/libweir_cuda.so $build/stage/wheel/weir/libweir_cuda.so weir_cuda
list wheel/scripts/weir "$(echo $build/stage/wheel/*.data/scripts/weir)" weir
.ci/linked.py --spdx "$to/weir-$version.spdx.json" "$version" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" "${files[@]}"
(cd $to && sha256sum -- * >SHA256SUMS)
ls -l $to
