#!/bin/bash
# Man pages and completion, generated from the option tables: nothing is missing, and bash completes.
# Usage: WEIR_PROGRAM=build/release/weir tests/cli/test_generate.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

# exits STATUS ARGUMENT...: runs weir and checks its exit status; stderr goes to $work/err.
exits() {
    local expected=$1 status
    shift
    "$weir" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    check "weir $* exits with $expected (was $status)" [ "$status" -eq "$expected" ]
    check "weir $* prints nothing to stdout" [ ! -s "$work/out" ]
}

for kind in man bash zsh; do
    mkdir "$work/$kind"
    exits 0 --generate "$kind" "$work/$kind"
done
bash_file=$work/bash/weir zsh_file=$work/zsh/_weir

# ---- nothing in the tables is missing ----

version=$("$weir" --version | sed -n '1s/^weir \([0-9.]*\) .*/\1/p')
mapfile -t commands < <("$weir" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
check "there are commands" [ ${#commands[@]} -ge 6 ]
for command in "${commands[@]}"; do
    check "weir.1 has $command" grep -qxF "\\fB$command\\fR" "$work/man/weir.1"
    [ "$command" != help ] || continue
    page=$work/man/weir-$command.1
    check "the page of $command has the version" grep -qF "\"weir $version\"" "$page"
    check "weir.1 points to the page of $command" grep -q "^\\.BR weir\\\\-$command (1)" "$work/man/weir.1"
    check "zsh knows $command" grep -q "^        '$command:" "$zsh_file"
    sed -n "/^    $command)\$/,/^        ;;\$/p" "$zsh_file" >"$work/zsh_command"
    mapfile -t options < <("$weir" "$command" --help-all | sed -n 's/^  --\([a-z0-9-]*\).*/\1/p')
    check "$command has options" [ ${#options[@]} -ge 2 ]
    # Help lists each option under one topic: as many in all as the table has, from which bash's list is made.
    listed=$(sed -n "s/^    $command:\*) words=\"\([^\"]*\)\".*/\1/p" "$bash_file" | tr ' ' '\n' | grep -c '^--')
    check "help of $command lists all $listed options" [ "${#options[@]}" -eq "$listed" ]
    for option in "${options[@]}"; do
        check "the page of $command has --$option" grep -q "^.fB.-.-${option//-/.-}.fR" "$page"
        check "bash: $command --$option" grep -qE "^    $command:\*\) words=\"(.* )?--${option}[ \"]" "$bash_file"
        check "zsh: $command --$option" grep -qE "^            '--$option(=\[|\[)" "$work/zsh_command"
    done
    # The descriptions, without the default in parentheses, which the page words differently.
    COLUMNS=1000 "$weir" "$command" --help-all | sed -n 's/^ .*  \([^ ].*\)/\1/p' | sed 's/ (default [^()]*)$//' >"$work/said"
    while read -r text; do
        check "the page of $command has: $text" grep -qF -- "$text" <(sed 's/\\-/-/g; s/\\&//g; s/\\(aq/'\''/g' "$page")
    done <"$work/said"
done

# ---- the pages in full ----

check "weir.1 has the groups of weir --help, in order" diff <("$weir" --help | sed -n 's/^\([A-Z][a-z]*\):$/\1/p') \
    <(sed -n 's/^\.SS \(.*\)/\1/p' "$work/man/weir.1" | grep -vx Help)
check "weir.1 has the exit statuses of weir --help" [ "$("$weir" --help | sed -n '/^Exit status:/,$p' | grep -oE '(^|[ ,]) *[0-9]+ ' | tr -dc '0-9\n')" = \
    "$(sed -n '/^\.SH EXIT STATUS/,/^\.SH SEE/s/^.fB\([0-9]*\).fR$/\1/p' "$work/man/weir.1")" ]

check "default and bounds" grep -qxF 'samples per batch (default 8; 1 to 65536 samples)' "$work/man/weir-run.1"
check "auto" grep -qF '(default auto; 1 to 4096 batches, or auto)' "$work/man/weir-run.1"
check "details" grep -qF 'auto is one thread per usable core, divided among local ranks' "$work/man/weir-run.1"
check "notes" grep -q '^DATA is a folder of episodes' "$work/man/weir-run.1"
mkdir "$work/again"
exits 0 --generate man "$work/again"
check "pages are the same each time" diff -r "$work/man" "$work/again"

# ---- bash completes ----

# completes WORD... : "LINE": completing the last WORD offers LINE.
completes() {
    local expected=${*: -1} offered
    offered=$(
        # shellcheck source=/dev/null
        source "$bash_file" || exit
        COMP_WORDS=(weir "${@:1:$#-2}")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMPREPLY=()
        _weir
        echo "${COMPREPLY[*]}"
    )
    check "weir ${*:1:$#-2}<TAB> offers '$expected' (was '$offered')" [ "$offered" = "$expected" ]
}

cd "$work" || exit
mkdir data "my data"
touch data/log.jsonl
mapfile -t sorted < <(compgen -f)
completes "" : "${commands[*]} --help --version"
completes r : "run report"
completes sy : synth
completes help d : doctor
completes run --b : --batch-size
completes run --batch_s : --batch-size
completes run --no : "--no-shuffle --no-timing"
completes run data --sampling "" : "timestep episode"
completes run --sampling ep : episode
completes run --on_error s : "skip substitute"
completes run --sampling = : "timestep episode"
completes run --sampling = t : timestep
completes run --io "" : "auto pread mmap uring http null"
completes run --num-workers "" : auto
completes run --batch-size "" : ""
completes run --action-offset - : ""
completes run dat : data
completes run my : "my data"
completes run data/ : data/log.jsonl
completes run --log data/l : data/log.jsonl
completes run "" : "${sorted[*]}"
[[ " ${commands[*]} " != *" motion "* ]] || completes motion --motion dat : data
completes run --profile dat : data
completes synth --format a : "act act-jpeg act-jpeg-nolen agilex astrobench"
completes synth --b : ""
completes doctor "" : "--json --help --help-all"
completes nonsense --b : ""

# ---- mistakes ----

exits 2 --generate
exits 2 --generate man
exits 2 --generate fish "$work/man"
check "a wrong word is answered with the valid ones" grep -qF "man, bash or zsh" "$work/err"
exits 1 --generate man "$work/none"
check "a missing folder is named" grep -qF "$work/none/weir.1: cannot be written" "$work/err"
if [ -e /dev/full ]; then
    ln -sf /dev/full "$work/bash/weir"
    exits 1 --generate bash "$work/bash"
    check "a full disk is reported" grep -qF "not written completely" "$work/err"
fi

finish
