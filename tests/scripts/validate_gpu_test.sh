#!/bin/sh
# Tests of scripts/validate-gpu: validate_gpu_test.sh SOURCE_FOLDER GPUBENCH_SLOW. The real program rehearses on the CPU with
# plans and copies as slow as on a GPU; a scripted program simulates a GPU machine with cases that fail, hang or write too
# much.
set -u
source=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # WHAT COMMAND...
  what=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "ok: $what"; else echo "FAILED: $what: $*"; failures=$((failures + 1)); fi
}
is() { [ "$1" = "$2" ]; }
says() { grep -q -E "$2" "$work/$1/summary.txt"; }
archived() { tar -tzf "$work/$1.tar.gz" | grep -qx "$1/$2"; }

# --- a package with a scripted program, and a driver that lists one GPU

mkdir -p "$work/pkg/bin" "$work/pkg/tests" "$work/path"
cp -R "$source/scripts" "$work/pkg/scripts"
rm -f "$work/pkg/scripts/race-pytorch"
cat >"$work/pkg/bin/gpubench" <<'SCRIPT'
#!/bin/sh
case $1 in
  version) echo "gpubench 9.9.9"; exit ;;
  list)
    [ "$2" = suites ] && printf 'suite smoke\ngemm 1\nmemory 1\nother 1\n\ngemm matmul\n'
    [ "$2" = suites ] || printf ' "id": "%s/first/n=1/bf16/x1",\n "id": "%s/second/n=1/bf16/x1",\n "id": "%s/first/n=2/f32/x1",\n' "$3" "$3" "$3"
    exit ;;
  doctor) echo "fine, libraries trusted: ${GPUBENCH_TRUST_LIBRARIES:-off}"; exit ;;
  describe-device) [ -z "${PLAY_NO_START:-}" ] || { echo "driver too old" >&2; exit 3; }; echo '{"name": "Scripted"}' >&3; exit ;;
esac
report='' text=$*
echo "gpubench $text"
while [ $# -gt 0 ]; do [ "$1" != --json ] || report=$2; shift; done
case "$text" in *"${PLAY_AT:-nowhere}"*) play=${PLAY:-} ;; *) play= ;; esac
[ "$play" != noise ] || head -c 60000 /dev/urandom | od
[ "$play" != hang ] || exec sleep 60
if [ -n "${PLAY_UNTIL:-}" ]; then
  echo call >>"$PLAY_CALLS"
  [ "$(wc -l <"$PLAY_CALLS")" -le "$PLAY_UNTIL" ] || { : >"$PLAY_CALLS.over"; exec sleep 60; }
fi
fail=0
[ "$play" != fail ] || fail=2
printf '{\n "totals": {\n  "cases": 5,\n  "pass": %s,\n  "fail": %s,\n  "error": 0\n }\n}\n' $((5 - fail)) $fail >"$report"
[ "$play" != unfinished ] || { echo '   "unfinished": {' >>"$report"; exec sleep 60; }
[ $fail = 0 ]
SCRIPT
cat >"$work/pkg/tests/scripted_gpu_test" <<'SCRIPT'
#!/bin/sh
[ "$GPUBENCH_REQUIRE_GPU" = 1 ]
SCRIPT
cat >"$work/pkg/tests/hanging_gpu_test" <<'SCRIPT'
#!/bin/sh
[ "${PLAY:-}" = hang-in-test ] || exit 0
printf '[ RUN      ] Gpu.Works\n[       OK ] Gpu.Works (3 ms)\n[ RUN      ] Gpu.Hangs<x>\n'
exec sleep 60
SCRIPT
printf '#!/bin/sh\n[ "$GPUBENCH_REQUIRE_GPU" != 1 ]\n' >"$work/pkg/tests/scripted_multi_gpu_test"
printf '#!/bin/sh\necho "GPU 0: Scripted"\n' >"$work/path/nvidia-smi"
printf '#!/bin/sh\nwhile [ "$1" != --error-exitcode ]; do shift; done\nshift 2\nexec "$@"\n' >"$work/path/compute-sanitizer"
chmod +x "$work/pkg/bin/gpubench" "$work/pkg/tests"/* "$work/path"/*

validate() { # NAME FLAGS...: the scripted program; the exit code is in $code
  name=$1
  shift
  PATH="$work/path:$PATH" "$work/pkg/scripts/validate-gpu" --out "$work/$name" "$@" >"$work/$name.out" 2>&1
  code=$?
}

# --- the rehearsal, with the real program

export GPUBENCH_SLOW="plan_ms=20;copy_bytes_per_s=400000000"
"$source/scripts/validate-gpu" --rehearse --program "$program" --budget 600s --out "$work/rehearsal" >"$work/rehearsal.out" 2>&1
expect "the rehearsal passes" is $? 0
for stage in environment gpu-tests own-kernels attention bias-gelu kernels gpt2-block gpt2-step races smoke gpu-suites noise startup ranks standard-memory; do
  expect "the rehearsal reaches $stage" says rehearsal "^$stage +(pass|skip) "
done
expect "it says what it is" says rehearsal "REHEARSAL on the CPU"
expect "noise is of the same case three times" grep -q '^memory/copy/n=1048576/bf16/x1: 3 runs' "$work/rehearsal/noise.txt"
expect "and of no other" is "$(wc -l <"$work/rehearsal/noise.txt")" 1
expect "its archive has the reports" archived rehearsal smoke.json
expect "each with its XML" archived rehearsal kernel-gemm-f32.xml
expect "stages come in the order of what they tell" is "$(cut -f 1 "$work/rehearsal/stages.tsv" | head -n 10 | tr '\n' ' ')" \
  "environment gpu-tests own-kernels attention bias-gelu kernels gpt2-block gpt2-step races memcheck "
expect "its archive has the summary" archived rehearsal summary.txt
[ "$failures" = 0 ] || { cat "$work/rehearsal.out"; tail -n 30 "$work/rehearsal/races.log"; }

GPUBENCH_SLOW="plan_ms=60000"  # a plan takes longer than the limit of its stage
"$source/scripts/validate-gpu" --rehearse --program "$program" --budget 11s --only smoke --out "$work/planning" >"$work/planning.out" 2>&1
expect "a stage that is still planning at its limit is cut" says planning '^smoke +cut'
expect "and its report is there" archived planning smoke.json
expect "and its XML" archived planning smoke.xml
expect "within its limit of 8 s" [ "$(cut -f 3 "$work/planning/stages.tsv")" -le 8 ]
unset GPUBENCH_SLOW

# --- a simulated machine with a GPU

validate good
expect "when all is well, the exit code is 0" is $code 0
expect "GPU tests run, and want a GPU" says good '^gpu-tests +pass'
expect "several GPUs are not asked of one" says good '^gpu-tests +pass .*3 program'
expect "one GPU plays two ranks" grep -q -e '--ranks 2 --virtual-ranks' "$work/good/ranks.log"
expect "a suite that is not named in the script runs as well" says good '^standard-other +pass .* 20 pass'
expect "the sanitizers run" says good '^racecheck +pass'
expect "what is not there is skipped with a reason" says good '^races +skip .*race-pytorch is not there'
expect "nothing is left" says good '^not reached: none'

expect "libraries are not trusted unasked" grep -q 'trusted: off' "$work/good/doctor.txt"
mkdir "$work/toolkit"
mv "$work/path/compute-sanitizer" "$work/toolkit/"
: >"$work/toolkit/nvcc"
chmod +x "$work/toolkit/nvcc"
ln -s "$work/toolkit/nvcc" "$work/path/nvcc"
validate beside --trust-libraries --only environment,memcheck
expect "compute-sanitizer is found beside nvcc" says beside '^memcheck +pass'
expect "--trust-libraries reaches the program" grep -q 'trusted: on' "$work/beside/doctor.txt"
rm "$work/path/nvcc"
mv "$work/toolkit/compute-sanitizer" "$work/path/"

PLAY=fail PLAY_AT=--check
export PLAY PLAY_AT
validate bad
expect "a failing case is exit code 1" is $code 1
expect "and is counted" says bad '^own-kernels +fail .*3 pass, 2 fail'
expect "later stages still run" says bad '^memcheck +pass'

PLAY=hang
validate slow --budget 12s --only smoke,memcheck
expect "stages that are chosen share the whole budget" grep -q 'smoke (at most 6 s)' "$work/slow.out"
expect "a stage that outlasts its limit is cut" says slow '^smoke +cut'
expect "and the next one runs" says slow '^memcheck +pass'
PLAY=unfinished
validate unfinished --budget 12s --only smoke,memcheck
expect "the rounds of an interrupted case are reported" says unfinished '^smoke +cut .*5 pass \(1 unfinished, with rounds\), then the limit'
PLAY=hang

expect "within its limit" [ "$(awk -F '\t' '$1 == "smoke" {print $3}' "$work/slow/stages.tsv")" -le 7 ]

PLAY_AT=kernel-gemm-bf16
validate shares --budget 30s --only kernels
expect "one kernel that hangs costs its share" says shares '^kernels +cut'
expect "and the others have their reports" archived shares kernel-copy.json

PLAY_AT=second
validate part --budget 8s --only standard-gemm
expect "a suite that is cut keeps the workloads that were done" says part '^standard-gemm +cut .*the limit came at second, bf16; 5 pass'

PLAY=hang-in-test
validate testhang --budget 8s --only gpu-tests
expect "a test program that hangs leaves XML of what it had done" grep -q 'tests="2" failures="0" errors="1"' "$work/testhang/hanging_gpu_test.xml"
expect "with the test in which it hung" grep -q '<testcase name="Gpu.Hangs_x_"><error ' "$work/testhang/hanging_gpu_test.xml"

PLAY=hang PLAY_AT=--json
validate short --budget 6s --only environment,smoke,memcheck,racecheck
expect "stages without time are listed" says short '^not reached:.* racecheck$'

PLAY=noise PLAY_AT=gemm
GPUBENCH_MOST_ARCHIVE_BYTES=50000
export GPUBENCH_MOST_ARCHIVE_BYTES
validate large --only environment,standard
unset GPUBENCH_MOST_ARCHIVE_BYTES
expect "the archive keeps its limit" [ "$(wc -c <"$work/large.tar.gz")" -le 50000 ]
expect "and says what was left out" says large '^standard-gemm.log$'
expect "reports stay" archived large standard-gemm-first-bf16.json

PLAY_NO_START=1
export PLAY_NO_START
validate broken --only environment
expect "a GPU on which the backend does not start is a failure with the reason" says broken '^environment +fail .*driver too old'
expect "with exit code 1" is $code 1
unset PLAY_NO_START

# --- a stop at any point

PLAY=hang PLAY_AT=--check
for signal in TERM KILL; do
  PATH="$work/path:$PATH" "$work/pkg/scripts/validate-gpu" --out "$work/$signal" >"$work/$signal.out" 2>&1 &
  victim=$!
  tries=0
  until grep -q '^validate-gpu: own-kernels' "$work/$signal.out" 2>/dev/null || [ $tries -gt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -$signal $victim
  wait $victim
  code=$?
  expect "after SIG$signal the archive has what was done" archived "$signal" device.json
  [ $signal = KILL ] || expect "SIG$signal is exit code 143" is $code 143
done
expect "and the summary says where" says TERM '^own-kernels +cut .*interrupted'

# Kills the script in each of its stages in turn, at run number PLAY_UNTIL + 1.
unset PLAY PLAY_AT
PLAY_CALLS=$work/calls PLAY_UNTIL=0
export PLAY_CALLS PLAY_UNTIL
lost='' killed=0
while :; do
  rm -rf "$work/calls" "$work/calls.over" "$work/killed" "$work/killed.tar.gz"
  PATH="$work/path:$PATH" setsid "$work/pkg/scripts/validate-gpu" --out "$work/killed" >"$work/killed.out" 2>&1 &
  victim=$!
  until [ -e "$work/calls.over" ] || ! kill -0 $victim 2>/dev/null; do sleep 0.05; done
  [ -e "$work/calls.over" ] || break
  kill -KILL -$victim
  wait $victim 2>/dev/null
  killed=$((killed + 1))
  begun=$(grep -c '^validate-gpu: .* (at most' "$work/killed.out")
  kept=$(tar -xzOf "$work/killed.tar.gz" killed/stages.tsv | wc -l)
  [ "$kept" = $((begun - 1)) ] || lost="$lost $PLAY_UNTIL ($kept of $begun stages)"
  PLAY_UNTIL=$((PLAY_UNTIL + 2))
done
wait $victim
unset PLAY_CALLS PLAY_UNTIL
expect "killed at any time, each stage before is in the archive:$lost" [ -z "$lost" ]
expect "in more than ten of its stages ($killed)" [ "$killed" -gt 10 ]

# --- usage

validate usage --budget soon
expect "a bad flag is exit code 2" is $code 2
validate usage --only nothing
expect "an unknown stage is exit code 2" is $code 2
if [ ! -e /dev/nvidia0 ]; then
  printf '#!/bin/sh\nexit 9\n' >"$work/path/nvidia-smi"
  validate none
  expect "without a GPU the exit code is 3" is $code 3
  expect "and nothing is written" [ ! -e "$work/none" ]
fi

echo "$failures failure(s)"
[ "$failures" = 0 ]
