#!/bin/sh
# Tests of build_preset, which scripts/run and scripts/test use: build_preset_test.sh SOURCE_FOLDER. The build folder has one
# rule.
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

# Output of a build without a terminal: progress and errors.
printf 'rule write\n  command = cp $in $out\nrule fail\n  command = echo what is wrong; exit 1\nbuild made: write given\nbuild broken: fail\n' >build/build.ninja
echo third >build/given
expect "a step is counted" 0 yes made
grep -q 'gpubench: 1 of 1 built, [0-9]* s' log.txt || { echo "FAILED: no progress"; cat log.txt; failures=$((failures + 1)); }
expect "a step that fails is an error" 3 yes broken
grep -q '^what is wrong' log.txt || { echo "FAILED: it does not say what failed"; cat log.txt; failures=$((failures + 1)); }

# Packages are built in a separate folder.
mkdir build-package
: >build-package/.dependencies-run
printf 'rule write\n  command = cp $in $out\nbuild made: write ../build/given\n' >build-package/build.ninja
build_preset package run made >log.txt 2>&1 && [ -e build-package/made ] || { echo "FAILED: a package's folder"; cat log.txt; failures=$((failures + 1)); }

# A folder is configured again only if an option differs.
printf 'GPUBENCH_TESTS:BOOL=OFF\nGPUBENCH_CUDA_ARCHITECTURES:STRING=90;80-real\n' >build/CMakeCache.txt
differing=$(options_that_differ build -DGPUBENCH_TESTS=ON '-DGPUBENCH_CUDA_ARCHITECTURES=90;80-real' -DOTHER=1)
[ "$differing" = "$(printf -- '-DGPUBENCH_TESTS=ON\n-DOTHER=1')" ] || { echo "FAILED: options that differ: $differing"; failures=$((failures + 1)); }
[ "$failures" = 0 ]
