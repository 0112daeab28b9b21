#!/bin/bash
# Tests "make install": installs into a scratch folder, builds examples/loader against it in every way, runs the
# results, reads the man pages, loads the completion, and uninstalls.
# Needs groff, zsh, gcc, g++, clang++ (.ci/packages.sh ci).
set -eu
cd "$(dirname "$0")/../.."
export COLUMNS=1000 # tables with all columns
work=$(mktemp -d)
manifest=build/release/install_manifest.txt
steps=0

# Keeps the manifest of the developer's own installation, so that it can still be uninstalled.
[ ! -f "$manifest" ] || cp "$manifest" "$work/manifest"
finish() {
    [ ! -f "$work/manifest" ] || cp "$work/manifest" "$manifest"
    rm -rf "$work"
}
trap finish EXIT

step() {
    steps=$((steps + 1))
    echo "-- $*"
}

fail() {
    echo "FAIL: $*"
    exit 1
}

# quiet COMMAND...: shows the command's output only if it fails.
quiet() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "$*"; }
}

step "make install with DESTDIR and PREFIX"
stage=$work/stage prefix=$work/stage/opt/weir
quiet make install DESTDIR="$stage" PREFIX=/opt/weir
# From here on only the installed files are used. They are moved, so that nothing can depend on the original prefix.
moved=$work/moved
mv "$prefix" "$moved"
[ -z "$(find "$stage" -type f)" ] || fail "files outside the prefix"
export PATH=$moved/bin:$PATH PKG_CONFIG_PATH=$moved/lib/pkgconfig
version=$(weir --version | sed -n '1s/^weir \([0-9.]*\) .*/\1/p')
soname=libweir.so.${version%.*}
[ "$(readlink "$moved/lib/libweir.so")" = "$soname" ] || fail "libweir.so is not a link to $soname"
readelf -d "$moved/lib/$soname" | grep -F SONAME | grep -qF "[$soname]" || fail "the soname is not $soname"
if readelf -d "$moved/bin/weir" | grep -E 'NEEDED.*libweir|R(UN)?PATH'; then
    fail "the program depends on the shared library or on a path"
fi
[ "$(pkg-config --modversion weir)" = "$version" ] || fail "weir.pc does not have version $version"

if [ -f build/release/libweir_cuda.so ]; then
    step "the CUDA module is found"
    COLUMNS=1000 weir doctor >"$work/doctor"
    grep -q "cuda module *yes .*$moved/lib/libweir_cuda.so" "$work/doctor" || { cat "$work/doctor"; fail "the CUDA module is not found"; }
fi

step "only the helper program links HDF5"
[ -x "$moved/bin/weir-hdf5" ] || fail "weir-hdf5 is not installed"
if readelf -d "$moved/lib/$soname" | grep 'NEEDED.*hdf5'; then fail "libweir.so needs HDF5"; fi

step "a dataset made by the installed program"
quiet weir synth "$work/data" --episodes 3 --steps 6 --size 64x48 --cameras top,wrist
quiet weir run "$work/data" --batch-size 4 --checksums "$work/checksums"
batches=$(wc -l <"$work/checksums")
[ "$batches" -gt 3 ] || fail "weir run gave $batches batches"

# try NAME PROGRAM: the example must get as many batches as weir run.
try() {
    local found
    LD_LIBRARY_PATH=$moved/lib "$2" "$work/data" >"$work/$1.out" || fail "$1 exits with $?"
    found=$(grep -cE '^(train|val) [0-9]+: images u8 .* qpos f32 ' "$work/$1.out" || true)
    [ "$found" -eq "$batches" ] || fail "$1: $found batches, weir run $batches"
    grep -q '^03b_image_decode  *work  *36 ' "$work/$1.out" || { cat "$work/$1.out"; fail "$1: no stage table"; }
}

needs_shared() {
    readelf -d "$1" | grep -F NEEDED | grep -qF "[$soname]"
}

with_cmake() {
    quiet cmake -S examples/loader -B "$work/$1" -G Ninja -DCMAKE_PREFIX_PATH="$moved" "${@:2}"
    quiet cmake --build "$work/$1"
    try "$1" "$work/$1/print_batches"
}

step "CMake, shared"
with_cmake cmake_shared
needs_shared "$work/cmake_shared/print_batches" || fail "not linked to $soname"

step "CMake, static"
with_cmake cmake_static -DWEIR_STATIC=ON
if needs_shared "$work/cmake_static/print_batches"; then fail "linked to $soname"; fi

step "CMake: another version, and the static library without its dependencies"
sed "s/find_package(weir/& ${version%%.*}.99/" examples/loader/CMakeLists.txt >"$work/CMakeLists.txt"
cp examples/loader/print_batches.c "$work"
if cmake -S "$work" -B "$work/newer" -DCMAKE_PREFIX_PATH="$moved" >"$work/log" 2>&1; then
    fail "${version%%.*}.99 was found in $version"
fi
mkdir "$work/none"
alone() {
    PKG_CONFIG_LIBDIR=$work/none PKG_CONFIG_PATH='' cmake -S examples/loader -B "$work/alone_$1" -G Ninja \
        -DCMAKE_PREFIX_PATH="$moved" -DWEIR_STATIC="$1" >"$work/log" 2>&1
}
alone OFF || { cat "$work/log"; fail "the shared library needs the dependencies of the static one"; }
if alone ON; then fail "the static library was found without its dependencies"; fi
# CMake may break the line anywhere.
[[ $(tr -s ' \n' ' ' <"$work/log") == *"by pkg-config, "*libjpeg* ]] || { cat "$work/log"; fail "the error does not name the static library's dependencies"; }

step "cc and pkg-config, shared"
read -ra flags <<<"$(pkg-config --cflags --libs weir)"
cc -Wall -Wextra -Werror examples/loader/print_batches.c "${flags[@]}" -o "$work/pc_shared"
needs_shared "$work/pc_shared" || fail "not linked to $soname"
try pc_shared_run "$work/pc_shared"

step "c++ and pkg-config"
for compiler in "g++ -std=c++11" "clang++ -std=c++20"; do
    # shellcheck disable=SC2086 # a compiler and its standard
    $compiler -Wall -Wextra -Werror -x c++ examples/loader/print_batches.c "${flags[@]}" -o "$work/pc_cpp"
    try "pc_cpp_${compiler%% *}" "$work/pc_cpp"
done

step "cc and pkg-config, static"
read -ra flags <<<"$(pkg-config --static --cflags --libs weir | sed 's/-lweir\b/-l:libweir.a/')"
cc -Wall -Wextra -Werror examples/loader/print_batches.c "${flags[@]}" -o "$work/pc_static"
if needs_shared "$work/pc_static"; then fail "linked to $soname"; fi
try pc_static_run "$work/pc_static"

if [ -d extras ]; then
    step "the extras' libraries and a test on the installed library, without the rest of the tree"
    mkdir "$work/alone"
    cp -r extras "$work/alone"
    quiet cmake -S "$work/alone/extras" -B "$work/extras" -G Ninja -DCMAKE_PREFIX_PATH="$moved"
    quiet cmake --build "$work/extras"
    needs_shared "$work/extras/test_policy" || fail "not linked to $soname"
    LD_LIBRARY_PATH=$moved/lib quiet "$work/extras/test_policy"
fi

# The profiler alone: the trace has the example's three steps, and only libc and zlib are needed.
try_profiler() {
    rm -rf "$work/traces"
    LD_LIBRARY_PATH=$moved/lib "$2" "$work/traces" >"$work/$1.out" || fail "$1 exits with $?"
    if ! grep -q '^steps 2 to 4: ' "$work/$1.out" || ! grep -q '^ *consume .* 3  ' "$work/$1.out"; then
        cat "$work/$1.out"
        fail "$1: no averages of three steps"
    fi
    [ "$(zcat "$work"/traces/*.pt.trace.json.gz | grep -c '"name":"ProfilerStep#')" -eq 3 ] || fail "$1: not three steps"
    if readelf -d "$2" "$moved/lib/libweir_prof.so.${version%.*}" | grep NEEDED | grep -vE 'lib(weir_prof|z|c|m)\.so|ld-linux'; then
        fail "$1 needs more than libc and zlib"
    fi
}

step "the profiler alone: CMake and pkg-config, shared and static"
for static in OFF ON; do
    quiet cmake -S examples/profiler -B "$work/profiler_$static" -G Ninja -DCMAKE_PREFIX_PATH="$moved" -DWEIR_STATIC=$static
    quiet cmake --build "$work/profiler_$static"
    try_profiler "profiler_cmake_$static" "$work/profiler_$static/profile_loop"
done
read -ra flags <<<"$(pkg-config --cflags --libs weir_prof)"
cc -Wall -Wextra -Werror examples/profiler/profile_loop.c "${flags[@]}" -o "$work/pc_profiler"
try_profiler pc_profiler_run "$work/pc_profiler"
read -ra flags <<<"$(pkg-config --static --cflags --libs weir_prof | sed 's/-lweir_prof\b/-l:libweir_prof.a/')"
cc -Wall -Wextra -Werror examples/profiler/profile_loop.c "${flags[@]}" -o "$work/pc_profiler_static"
try_profiler pc_profiler_static_run "$work/pc_profiler_static"

nvcc=$(command -v nvcc /usr/local/cuda/bin/nvcc | head -1 || true)
if [ -n "$nvcc" ]; then
    step "a kernel with clocks: nvcc and pkg-config, CMake"
    read -ra flags <<<"$(pkg-config --cflags --libs weir_prof)"
    quiet "$nvcc" -std=c++17 -Xcompiler -Wall,-Wextra,-Werror examples/kernel_clock/clocks.cu "${flags[@]}" -o "$work/nvcc_clocks"
    CUDACXX=$nvcc quiet cmake -S examples/kernel_clock -B "$work/cmake_clocks" -G Ninja -DCMAKE_PREFIX_PATH="$moved" \
        -DCMAKE_CUDA_ARCHITECTURES=90
    quiet cmake --build "$work/cmake_clocks"
    for program in "$work/nvcc_clocks" "$work/cmake_clocks/clocks"; do # without a GPU it fails with one line
        LD_LIBRARY_PATH=$moved/lib "$program" >"$work/clocks" 2>&1 && wanted='^compute  *63  ' || wanted='^clocks: the kernel did not run'
        grep -q "$wanted" "$work/clocks" || { cat "$work/clocks"; fail "$program"; }
    done
fi

step "C++"
{
    (cd "$moved/include/weir" && find . -name '*.h' -printf '#include <weir/%P>\n')
    cat <<'CPP'
int main()
{
    weir_loader_config config;
    weir_loader *loader;
    weir_err err = WEIR_ERR_NONE;
    weir_loader_config_default(&config);
    config.data = "/nonexistent";
    WEIR_ZONE(WEIR_STAGE_TRAIN_FORWARD);
    return weir_loader_open(&loader, &config, &err) < 0 && err.code < 0 && !weir_thread_self ? 0 : 1;
}
CPP
} >"$work/all.cc"
read -ra flags <<<"$(pkg-config --cflags --libs weir)"
for compiler in "g++ -std=c++11" "g++ -std=c++20" "clang++ -std=c++17"; do
    # shellcheck disable=SC2086 # a compiler and its standard
    $compiler -Wall -Wextra -Werror "$work/all.cc" "${flags[@]}" -o "$work/cc"
    LD_LIBRARY_PATH=$moved/lib "$work/cc" || fail "$compiler: the program exits with $?"
done

step "man pages"
pages=("$moved"/share/man/man1/*.1)
[ ${#pages[@]} -ge 6 ] || fail "${#pages[@]} man pages"
for page in "${pages[@]}"; do
    groff -Kutf8 -man -Tutf8 -ww "$page" >"$work/page" 2>"$work/log"
    [ ! -s "$work/log" ] || { cat "$work/log"; fail "$page"; }
    grep -q "weir $version" "$work/page" || fail "$page does not have its version"
done

step "completion"
share=$moved/share
bash -euc 'source "$1"; complete -p weir >/dev/null; COMP_WORDS=(weir sy) COMP_CWORD=1; _weir; [ "${COMPREPLY[*]}" = synth ]' \
    _ "$share/bash-completion/completions/weir"
shellcheck -s bash "$share/bash-completion/completions/weir"
zsh -n "$share/zsh/site-functions/_weir"
zsh -fc 'fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; [[ $_comps[weir] == _weir ]]' _ \
    "$share/zsh/site-functions" || fail "zsh does not use _weir for weir"

step "make uninstall"
mkdir -p "$stage/opt"
mv "$work/moved" "$prefix"
touch "$prefix/include/weir/mine.h"
quiet make uninstall DESTDIR="$stage"
[ "$(find "$prefix" ! -type d)" = "$prefix/include/weir/mine.h" ] || { find "$prefix" ! -type d; fail "files are left"; }
[ ! -e "$prefix/lib/cmake/weir" ] || fail "lib/cmake/weir is left, and empty"
if make uninstall DESTDIR="$stage" >"$work/log" 2>&1; then fail "there was nothing left to uninstall"; fi

echo "$steps steps, 0 failures"
