#!/bin/sh
# scripts/test --full chooses three of the tests labeled `turn` by the commit: turns_test.sh SOURCE_FOLDER. ctest and git are
# fake scripts; the function under test is extracted from scripts/test.
set -u
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir bin
cat >bin/ctest <<'CTEST'
#!/bin/sh
echo "Test project /somewhere"
for test in g b f.x a e d c; do echo "  Test #$((number = ${number:-0} + 1)): $test"; done
echo "Total Tests: 7"
CTEST
printf '#!/bin/sh\ncat commit\n' >bin/git
chmod +x bin/*
PATH=$work/bin:$PATH
sed -n '/^others_than_turn() {/,/^}/p' "$source/scripts/test" >function.sh
. ./function.sh
failures=0

expect() { # COMMIT TURNS OTHERS
  echo "$1" >commit
  others=$(others_than_turn 2>turns)
  turns=$(sed 's/.* //' turns | tr '\n' ' ')
  if [ "$others" = "$3" ] && [ "$turns" = "$2 " ]; then echo "ok: commit $1"; return; fi
  echo "FAILED: commit $1: turn of '$turns', expected '$2'; others $others, expected $3"
  failures=$((failures + 1))
}

expect 000000 "a b c" '^(d|e|f[.]x|g)$'
expect 000005 "a f.x g" '^(b|c|d|e)$'
expect abcdef "b c d" '^(a|e|f[.]x|g)$'  # 11,259,375 = 7 * 1,608,482 + 1
[ "$failures" = 0 ]
