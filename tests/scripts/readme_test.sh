#!/bin/sh
# Transcripts and the table in Markdown files match the program's output, and the check finds differences:
# readme_test.sh SOURCE_FOLDER PROGRAM_FOLDER
set -u
source=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

failed() { echo "FAILED: $1"; cat "$work/log"; failures=$((failures + 1)); }
check() { "$source/scripts/refresh-readme" --check --programs "$programs" "$@" >"$work/log" 2>&1; }
expect() { # WHAT FILE, which must be stale
  if grep -q "^refresh-readme: $2: .* is stale" "$work/log"; then echo "ok: $1"; else failed "$1"; fi
}

guide=$source/harness/cli/README.md suites=$source/suites/README.md
sed 's/^VERDICT  PASS/VERDICT  FINE/' "$guide" >"$work/word.md"
sed '/ triad f32/d' "$guide" >"$work/line.md"
sed 's/^verdict  .*/verdict rate case/' "$guide" >"$work/column.md"
sed '/^| `gemm`/d' "$suites" >"$work/table.md"
sed 's/`linear_forward`/`linear_foreward`/' "$suites" >"$work/workload.md"

# One run checks all files: those with a transcript or the table, and those that must be stale.
set --
for place in "README.md:transcript excerpt checked" "harness/cli/README.md:transcript run checked" \
    "harness/compare/README.md:transcript gate" "suites/README.md:table suites"; do
  file=$source/${place%%:*}
  grep -qF "<!-- ${place#*:} -->" "$file" || { : >"$work/log"; failed "${place%%:*} has no ${place#*:}"; }
  set -- "$@" --file "$file"
done
for name in word line column table workload; do set -- "$@" --file "$work/$name.md"; done
check "$@"
code=$?
[ "$code" = 1 ] && echo "ok: stale files end with exit code 1" || failed "exit $code, expected 1"
grep -q "^refresh-readme: $source/" "$work/log" && failed "the project's files are stale" || echo "ok: the project's files are not stale"
expect "another word is found" "$work/word.md"
expect "a missing line is found" "$work/line.md"
expect "a missing column is found" "$work/column.md"
expect "a suite missing in the table is found" "$work/table.md"
expect "another workload in the table is found" "$work/workload.md"
grep -v '<!-- transcript' "$guide" >"$work/none.md"
check --file "$work/none.md"
code=$?
[ "$code" = 2 ] && echo "ok: a file without transcripts is refused" || failed "exit $code, expected 2"
exit $((failures > 0))
