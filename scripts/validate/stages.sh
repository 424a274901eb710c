# The stages of scripts/validate-gpu. Each sets its result by worse() of run.sh.
# Global: program, device, tests (a folder), scripts, out, rehearse, listed (the program's suites).

# gpubench LOG REPORT FLAGS...: runs the program on $device; also writes JUnit XML next to the report.
gpubench() {
  log=$1 report=$2
  shift 2
  limited "$log" "$program" --device "$device" --json "$out/$report" --junit "$out/${report%.json}.xml" --progress lines "$@"
}

# --- names of the suites

suites() { "$program" list suites 2>/dev/null | awk 'NR > 1 && NF == 0 {exit} NR > 1 {print $1}'; }
has_suite() { printf '%s\n' "$listed" | grep -qx "$1"; }

# --- verdicts

# total VERDICT REPORT...: prints the number of cases with the verdict.
total() {
  word="\"$1\":"
  shift
  cat "$@" 2>/dev/null | awk -v word="$word" '/"totals": \{/ {inside = 1} inside && $1 == word {sum += $2; inside = 0} END {print sum + 0}'
}

# count REPORT...: sets $counts to a text, $bad to the number of wrong cases. Interrupted cases have their rounds in the
# report.
count() {
  counts='' bad=0
  for verdict in pass unsupported skipped fail downgraded not_proven error; do
    number=$(total $verdict "$@")
    [ "$number" -gt 0 ] || continue
    counts="$counts${counts:+, }$number $verdict"
    case $verdict in fail | downgraded | not_proven | error) bad=$((bad + number)) ;; esac
  done
  unfinished=$(cat "$@" 2>/dev/null | grep -o '"unfinished": *{' | wc -l)
  [ "$unfinished" = 0 ] || counts="$counts ($unfinished unfinished, with rounds)"
}

# judge CODE REPORT: result of a gpubench run; if stopped at its limit, the report has the finished cases.
judge() {
  if [ ! -s "$out/$2" ]; then
    if [ "$1" = 124 ]; then worse cut "no report within the limit"; else worse fail "exit code $1, no report"; fi
    return
  fi
  count "$out/$2"
  if [ $bad -gt 0 ]; then worse fail "$counts"; return; fi
  case $1 in
    0) worse pass "$counts" ;;
    124) worse cut "$counts, then the limit" ;;
    *) worse fail "$counts, exit code $1" ;;
  esac
}

# --- the stages

environment() {
  "$program" version >"$out/version.txt" 2>&1
  { uname -a; cat /etc/os-release; ldd --version 2>&1 | head -n 1; nproc; } >"$out/host.txt" 2>&1
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi -L >"$out/gpus.txt" 2>&1
    limited nvidia-smi.txt nvidia-smi -q
    limited nvidia-smi.txt nvidia-smi topo -m
  fi
  limited doctor.txt "$program" doctor --color never || worse fail "doctor: exit code $?"
  if limited device.log "$program" describe-device --device "$device" --worker-output 3 3>"$out/device.json"; then
    worse pass "$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' "$out/device.json" | head -n 1)"
  else
    worse fail "the $device backend does not start: $(tail -n 1 "$out/device.log")"
  fi
  # Python's packages: the races use their libraries, and they are often the only copy of cuDNN.
  timeout 20 python3 -c 'import sys; sys.path[:] = filter(None, sys.path)  # not from the current folder
import importlib.metadata as m; print(*sorted(f"{d.name} {d.version}" for d in m.distributions()), sep="\n")' 2>/dev/null |
    grep -i -E '^(torch|triton|numpy|nvidia-)' >"$out/python.txt"
  cudnn_properties
}

# cuDNN's description of the GPU, for which tests without a GPU can build execution plans.
cudnn_properties() {
  describer=$tests/cudnn_device_properties
  if [ -x "$describer" ] && [ -z "$rehearse" ]; then
    limited cudnn.log env "LD_LIBRARY_PATH=$(nvidia_folders)" "$describer" "$out/cudnn-device.json" || worse fail "cuDNN's device properties: exit code $?"
  else
    worse pass "cuDNN's device properties were not asked for"
  fi
}

# Folders of NVIDIA's libraries, for programs that link them; gpubench searches for them itself.
nvidia_folders() {
  folders=${LD_LIBRARY_PATH:-}
  for folder in /usr/local/cuda*/lib64 "${VIRTUAL_ENV:-/nowhere}"/lib/python3*/*-packages/nvidia/*/lib \
    "${HOME:-/nowhere}"/.local/lib/python3*/site-packages/nvidia/*/lib /usr/local/lib/python3*/*-packages/nvidia/*/lib /usr/lib/python3*/*-packages/nvidia/*/lib; do
    [ ! -d "$folder" ] || folders=${folders:+$folders:}$folder
  done
  echo "$folders"
}

# The time to start a process and open the device, which each worker needs.
startup() {
  for attempt in 1 2 3; do
    before=$(date +%s%N)
    limited startup.log "$program" describe-device --device "$device" --worker-output 3 3>>"$out/startup.log" || { worse fail "exit code $?"; return; }
    after=$(date +%s%N)
    milliseconds="${milliseconds:+$milliseconds, }$(((after - before) / 1000000))"
    echo "start $attempt: $(((after - before) / 1000000)) ms" >>"$out/startup.txt"
  done
  worse pass "a process with an open device after $milliseconds ms"
}

# gpu_tests FILTER SUFFIX: runs the tests that match FILTER in all programs; log names end with SUFFIX.
gpu_tests() {
  run=0
  for test in "$tests"/*; do
    # A package has only GPU tests; a build folder has all tests.
    case $test in
      */cudnn_device_properties) continue ;;
      *gpu*_test) ;;
      *) [ -d "$tests/../bin" ] || continue ;;
    esac
    [ -f "$test" ] && [ -x "$test" ] || continue
    run=$((run + 1))
    require=GPUBENCH_REQUIRE_GPU=1
    [ -z "$rehearse" ] || require=GPUBENCH_REQUIRE_GPU=
    case $test in *multi_gpu_test) [ "$(gpus)" -ge 2 ] || require=GPUBENCH_REQUIRE_GPU= ;; esac
    results=$out/${test##*/}$2
    limited "${results##*/}.log" env "LD_LIBRARY_PATH=$(nvidia_folders)" "$require" "$test" "--gtest_filter=$1" "--gtest_output=xml:$results.xml"
    code=$?
    gtest_xml "$results.log" "$results.xml" "${test##*/}"
    [ $code -eq 0 ] || worse fail "${test##*/}: exit code $code"  # also at the limit: such a test hangs
  done
  if [ $run -eq 0 ]; then worse skip "there are no GPU tests in $tests"; else worse pass "$run program(s)"; fi
}

# Number of GPUs that the driver lists.
gpus() { cat "$out/gpus.txt" 2>/dev/null | grep -c '^GPU '; }

# Flags for suites of several ranks; one GPU runs two virtual ranks.
rank_flags() {
  if [ -n "$rehearse" ]; then echo "--ranks 2"
  elif [ "$(gpus)" -ge 4 ]; then echo "--ranks 2,$(gpus)"
  elif [ "$(gpus)" -ge 2 ]; then echo "--ranks 2"
  else echo "--ranks 2 --virtual-ranks"; fi
}

# All collectives, and data-parallel steps.
ranks() {
  which='--tier quick --suite collectives,transformer'
  [ -z "$rehearse" ] || which='--tier smoke --suite collectives --filter all_reduce.*f32'
  # shellcheck disable=SC2046,SC2086
  gpubench ranks.log ranks.json $which $(rank_flags)
  judge $? ranks.json
}

# smoke NAME FLAGS...: checks every element of the selected smoke cases, report NAME.json.
smoke() {
  into=$1
  shift
  if [ -n "$rehearse" ]; then set -- --suite norm,optimizer --precision bf16 --filter 'layer_norm_forward|clip'; fi
  gpubench "$into.log" "$into.json" --tier smoke --check full "$@"
  judge $? "$into.json"
}

# chosen NAME CASES REHEARSED: checks and times the standard cases with these ids, report NAME.json.
chosen() {
  cases=$2 tier=standard
  if [ -n "$rehearse" ]; then cases=$3 tier=smoke; fi
  gpubench "$1.log" "$1.json" --tier $tier --filter "^$cases/x1\$"
  judge $? "$1.json"
}

# The most important kernels of training steps, each with a separate report.
kernels() {
  square='gemm/matmul/m=(4096|8192),n=(4096|8192),k=(4096|8192)'
  left_over=6
  while read -r kernel cases rehearsed; do
    share $left_over
    left_over=$((left_over - 1))
    chosen "kernel-$kernel" "$cases" "$rehearsed"
  done <<CASES
gemm-bf16 gemm/matmul/m=8192,n=8192,k=8192/bf16 gemm/matmul/m=35,n=127,k=1760/f32
copy memory/copy/n=1073741824/bf16 memory/copy/n=1048576/bf16
adamw optimizer/adamw/n=124439808/.* optimizer/clip/.*bf16
layer-norm-backward norm/layer_norm_backward/rows=(16384,n=4096|1024,n=12288)/bf16 norm/layer_norm_backward/rows=256,n=768/bf16
gemm-f8 $square/f8[a-z0-9_]* gemm/matmul/m=1,n=1,k=1/f32
gemm-f32 $square/f32 gemm/matmul/m=1,n=1,k=1/f32
CASES
  words=
  count "$out"/kernel-*.json
  worse "$status" "$counts"
}

workloads() {
  "$program" list --suite "$1" --tier standard --format json 2>/dev/null |
    awk -F '"' '$2 == "id" {split($4, part, "/"); if (!seen[part[2]]++) print part[2]}'
}

# One workload at a time, bf16 first: rounds of a run's cases alternate, so a stopped run has no finished case.
standard() {
  if [ -n "$rehearse" ]; then
    case $1 in memory | attention) ;; *) worse skip "not rehearsed"; return ;; esac
    gpubench "standard-$1.log" "standard-$1.json" --suite "$1" --tier smoke --precision bf16 --filter 'copy|causal_forward.*s=128'
    judge $? "standard-$1.json"
    return
  fi
  for precision in bf16 others; do
    for workload in $(workloads "$1"); do
      report=standard-$1-$workload-$precision.json
      if [ $precision = bf16 ]; then only_these='--precision bf16'; else only_these='--exclude /bf16/'; fi
      [ "$1" != collectives ] || only_these="$only_these $(rank_flags)"
      # shellcheck disable=SC2086
      gpubench "standard-$1.log" "$report" --suite "$1" --tier standard --filter "^$1/$workload/" $only_these
      code=$?
      case $code in
        0 | 1 | 3) [ -s "$out/$report" ] || worse fail "$workload: exit code $code, no report" ;;  # otherwise judged by its counts below
        124) worse cut "the limit came at $workload, $precision"; break 2 ;;
        5) ;;  # nothing ran: none of these precisions
        *) worse fail "$workload: exit code $code" ;;
      esac
    done
  done
  count "$out/standard-$1"-*.json
  if [ $bad -gt 0 ]; then
    worse fail "$counts"
  elif [ "$(total pass "$out/standard-$1"-*.json)" = 0 ] && [ "$status" != cut ]; then
    worse fail "nothing passed${counts:+: $counts}"  # the GPU's backend supports no case of the suite
  else
    worse pass "$counts"
  fi
}

noise_cases='gemm/matmul/m=4096,n=4096,k=4096/bf16|attention/causal_forward/b=1,h=32,kv=32,s=4096,d=128/bf16|optimizer/adamw/n=124439808/f32|memory/copy/n=1073741824/bf16'

# The same cases in three consecutive processes: the noise between runs.
noise() {
  cases="^($noise_cases)/x1\$" tier=standard
  if [ -n "$rehearse" ]; then cases='^memory/copy/n=1048576/bf16/x1$' tier=smoke; fi
  for attempt in 1 2 3; do
    gpubench noise.log "noise-$attempt.json" --tier $tier --filter "$cases"
    judge $? "noise-$attempt.json"
    [ "$status" = fail ] || words=
    [ ! -s "$out/noise-$attempt.json" ] || medians "$out/noise-$attempt.json" >>"$out/noise-medians.txt"
  done
  if [ ! -s "$out/noise-medians.txt" ]; then
    worse "$status" "no report has a median"
    return
  fi
  awk '{n[$1]++; if (n[$1] == 1 || $2 < low[$1]) low[$1] = $2; if ($2 > high[$1]) high[$1] = $2}
    END {for (id in n) printf "%s: %d runs, largest median %.2f %% above the smallest\n", id, n[id], 100 * (high[id] / low[id] - 1)}' \
    "$out/noise-medians.txt" | sort >"$out/noise.txt"
  worse "$status" "$(awk '{for (i = 2; i <= NF; i++) if ($i == "%" && $(i - 1) + 0 > most) most = $(i - 1) + 0} END {printf "medians of three runs within %.2f %%", most}' "$out/noise.txt")"
}

# medians REPORT: prints "ID MICROSECONDS" for each case with a median.
medians() {
  awk -v RS='}' -F '"' '{name = ""; for (i = 2; i < NF; i++) {if ($i == "name") name = $(i + 2); if ($i == "real_time") {time = $(i + 1); gsub(/[^0-9.e+-]/, "", time)}}
    if (sub(/_median$/, "", name)) print name, time + 0}' "$1"
}

# races REGEX: runs the races whose names match.
races() {
  race=$scripts/race-pytorch
  [ -r "$race" ] || { worse skip "scripts/race-pytorch is not there"; return; }
  command -v python3 >/dev/null || { worse skip "there is no python3"; return; }
  if [ -n "$rehearse" ]; then
    limited "$name.log" python3 "$race" --self-test || worse fail "self-test: exit code $?"
    return
  fi
  limited torch.txt python3 -c 'import sys; sys.path[:] = filter(None, sys.path)  # not from the current folder
import torch; print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name())' ||
    { worse skip "torch with a GPU cannot be imported: $(tail -n 1 "$out/torch.txt")"; return; }
  limited "$name.log" python3 "$race" --program "$program" --device "$device" --only "$1" --out "$out/$name.json" --budget $((stage_end - $(now) - 5))
  code=$?
  last=$(tail -n 1 "$out/$name.log")
  case $code in 0) worse pass "$last" ;; 124) worse cut "$last" ;; *) worse fail "exit code $code: $last" ;; esac
}

# sanitizer TOOL SUITES: the suites' smoke tier under compute-sanitizer, in one process.
sanitizer() {
  checker=$(command -v compute-sanitizer) ||
    { nvcc=$(command -v nvcc) && checker=$(dirname "$(readlink -f "$nvcc")")/compute-sanitizer && [ -x "$checker" ]; } ||
    { worse skip "there is no compute-sanitizer, on the path or beside nvcc"; return; }
  suites=$2
  if [ -n "$rehearse" ]; then suites=memory; fi
  # API errors are not reported: libraries cause them by probing, and gpubench checks each of its calls.
  limited "$1.log" "$checker" --tool "$1" --report-api-errors no --error-exitcode 99 \
    "$program" --device "$device" --isolate off --deadline off --suite "$suites" --tier smoke --precision bf16 --json "$out/$1.json" --junit "$out/$1.xml" --progress lines
  code=$?
  found=$(grep -c -E '^========= +(Invalid|Misaligned|Error:|Race reported|Warning: Race|Uninitialized)' "$out/$1.log")
  if [ "$found" -gt 0 ] || [ $code -eq 99 ]; then
    worse fail "$found finding(s) in $1.log"
  elif [ $code -eq 124 ]; then
    worse cut "clean until the limit"
  else
    judge $code "$1.json"
  fi
}
