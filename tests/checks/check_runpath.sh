#!/bin/bash
# No program, library or module in a build folder has an RPATH or RUNPATH: an empty or relative entry is whatever folder
# the program is started in.
# Usage: tests/checks/check_runpath.sh BUILD_FOLDER; --self-test checks that it finds one.
set -eu

# elf_with_path FOLDER: prints the files that have one, and to descriptor 3 the number of files checked.
elf_with_path() {
    local file n=0
    while IFS= read -r -d '' file; do
        [ "$(head -c 4 "$file" | tr -d '\0')" = $'\177ELF' ] || continue
        n=$((n + 1))
        readelf -dW "$file" 2>/dev/null | grep -E '\((RPATH|RUNPATH)\)' | sed "s|^|$file: |" || true
    done < <(find "$1" -type f \( -perm -u+x -o -name '*.so*' \) ! -name '*.o' ! -path '*/nvjpeg-venv/*' -print0)
    echo "$n" >&3
}

if [ "$1" = --self-test ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    echo 'int main(void) { return 0; }' >"$work/a.c"
    cc -o "$work/clean" "$work/a.c"
    [ -z "$(elf_with_path "$work" 3>/dev/null)" ]
    cc -o "$work/bad" "$work/a.c" '-Wl,-rpath,/usr/lib:'
    elf_with_path "$work" 3>/dev/null | grep -q "$work/bad: "
    exit
fi
exec 4>&1
n=$(elf_with_path "$1" 3>&1 >&4 4>&-)
[ "$n" -gt 0 ] || { echo "$1: no programs found"; exit 1; }
found=$(elf_with_path "$1" 3>/dev/null)
echo "$n programs, libraries and modules"
[ -z "$found" ] || { echo "these have an RPATH or RUNPATH; build them with CMAKE_SKIP_RPATH"; exit 1; }
