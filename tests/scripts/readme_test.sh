#!/bin/sh
# README.md's transcripts have the form of what the program prints now, and the check would see it if they had not:
# readme_test.sh SOURCE_FOLDER PROGRAM_FOLDER
set -u
source=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

failed() { echo "FAILED: $1"; cat "$work/log"; failures=$((failures + 1)); }
expect() { # WHAT FILE, which must be stale
  if grep -q "^refresh-readme: $2: .* is stale" "$work/log"; then echo "ok: $1"; else failed "$1"; fi
}

# All of them against one run of the transcripts.
sed 's/^VERDICT  PASS/VERDICT  FINE/' "$source/README.md" >"$work/word.md"
sed '/ memory\/triad/d' "$source/README.md" >"$work/line.md"
sed 's/^verdict  .*/verdict rate case/' "$source/README.md" >"$work/column.md"
sed '/^| `gemm`/d' "$source/README.md" >"$work/table.md"
sed 's/`linear_forward`/`linear_foreward`/' "$source/README.md" >"$work/workload.md"
set --
for name in word line column table workload; do set -- "$@" --readme "$work/$name.md"; done
"$source/scripts/refresh-readme" --check --programs "$programs" --readme "$source/README.md" "$@" >"$work/log" 2>&1
code=$?
[ "$code" = 1 ] && echo "ok: stale files are told by the exit code" || failed "exit $code, expected 1"
grep -q "^refresh-readme: $source/README.md" "$work/log" && failed "README.md is not stale" || echo "ok: README.md is not stale"
expect "another word is seen" "$work/word.md"
expect "a line that is missing is seen" "$work/line.md"
expect "a column that is missing is seen" "$work/column.md"
expect "a suite that is missing in the table is seen" "$work/table.md"
expect "another workload in the table is seen" "$work/workload.md"
grep -v '<!-- transcript' "$source/README.md" >"$work/none.md"
"$source/scripts/refresh-readme" --check --programs "$programs" --readme "$work/none.md" >"$work/log" 2>&1
code=$?
[ "$code" = 2 ] && echo "ok: a README without transcripts is refused" || failed "exit $code, expected 2"
exit $((failures > 0))
