#!/bin/sh
# README.md's transcripts have the form of what the program prints now, and the check would see it if they had not:
# readme_test.sh SOURCE_FOLDER PROGRAM_FOLDER
set -u
source=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

check() { # WHAT EXIT_CODE README
  "$source/scripts/refresh-readme" --check --programs "$programs" --readme "$3" >"$work/log" 2>&1
  code=$?
  if [ "$code" = "$2" ]; then echo "ok: $1"; return; fi
  echo "FAILED: $1: exit $code, expected $2"
  cat "$work/log"
  failures=$((failures + 1))
}

check "README.md is not stale" 0 "$source/README.md"
sed 's/^VERDICT  PASS/VERDICT  FINE/' "$source/README.md" >"$work/word.md"
check "another word is seen" 1 "$work/word.md"
sed '/ memory\/triad/d' "$source/README.md" >"$work/line.md"
check "a line that is missing is seen" 1 "$work/line.md"
sed 's/^verdict  .*/verdict rate case/' "$source/README.md" >"$work/column.md"
check "a column that is missing is seen" 1 "$work/column.md"
sed '/^| `gemm`/d' "$source/README.md" >"$work/table.md"
check "a suite that is missing in the table is seen" 1 "$work/table.md"
sed 's/`linear_forward`/`linear_foreward`/' "$source/README.md" >"$work/workload.md"
check "another workload in the table is seen" 1 "$work/workload.md"
grep -v '<!-- transcript' "$source/README.md" >"$work/none.md"
check "a README without transcripts is refused" 2 "$work/none.md"
exit $((failures > 0))
