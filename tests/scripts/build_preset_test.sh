#!/bin/sh
# Tests of build_preset, by which scripts/run and scripts/test build: build_preset_test.sh SOURCE_FOLDER. The folder that is
# built holds one rule.
set -u
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir build
: >build/.dependencies-run
printf 'rule write\n  command = cp $in $out\nbuild made: write given\n' >build/build.ninja
echo first >build/given
. "$source/scripts/dependencies.sh"
failures=0

expect() { # WHAT EXIT_CODE SAID TARGET
  build_preset default run "$4" >log.txt 2>&1
  code=$?
  said=no
  grep -q 'gpubench: building' log.txt && said=yes
  if [ "$code" = "$2" ] && [ "$said" = "$3" ]; then echo "ok: $1"; return; fi
  echo "FAILED: $1: exit $code, expected $2; said that it builds: $said, expected $3"
  cat log.txt
  failures=$((failures + 1))
}

expect "what is missing is built" 0 yes made
expect "what is there is not built again, and nothing is said" 0 no made
sleep 1
echo second >build/given
expect "what has changed is built" 0 yes made
grep -q second build/made || { echo "FAILED: it was not built"; failures=$((failures + 1)); }
expect "a target that does not exist is an error" 3 yes missing
echo 'not ninja' >build/build.ninja
expect "a build file that cannot be read is an error" 3 yes made
rm build/given build/made
printf 'rule write\n  command = cp $in $out\nbuild made: write given\n' >build/build.ninja
expect "a source that has gone is an error" 3 yes made
[ "$failures" = 0 ]
