# Build dependencies: their probes and Debian packages. Sourced by scripts; needs only a POSIX shell.

# kind | probe | Debian package | purpose
gpubench_dependencies() { # run|tests|oracle|cross
  cat <<'LIST'
command|c++|g++|C++20 compiler
command|cmake|cmake|build system
command|ninja|ninja-build|build system
header|fmt/core.h|libfmt-dev|text formatting
header|CLI/CLI.hpp|libcli11-dev|command line
header|nlohmann/json.hpp|nlohmann-json3-dev|JSON reports
header|re2/re2.h|libre2-dev|regular expressions of --filter, in linear time
header|boost/math/distributions/students_t.hpp|libboost-dev|Student's t
header|dnnl.hpp|libdnnl-dev|oneDNN, the CPU reference implementation
header|hwy/highway.h|libhwy-dev|Highway, vector code for each processor
header|CL/cl.h|opencl-c-headers|asked for by oneDNN's CMake package
library|libOpenCL.so|ocl-icd-opencl-dev|asked for by oneDNN's CMake package
LIST
  [ "$1" = tests ] && cat <<'LIST'
header|gtest/gtest.h|libgtest-dev|tests
header|gmock/gmock.h|libgmock-dev|tests
header|benchmark/benchmark.h|libbenchmark-dev|benchmarks of the harness itself
library|libopenblas.so|libopenblas-dev|OpenBLAS, an example of an implementation under test
command|mpirun|openmpi-bin|starts ranks in several processes
command|mpicc|libopenmpi-dev|says what their module is built with
header|valijson/validator.hpp|libvalijson-dev|schema validation in the tests
file|/usr/share/benchmark/compare.py|libbenchmark-tools|Google Benchmark's compare.py, which must read what we write
python|scipy.stats|python3-scipy|what compare.py asks for
command|clang++|clang|the address sanitizer's build, and fuzzing
command|ld.lld|lld|links tests in a fifth of the time
command|ccache|ccache|compiles what has not changed once for all clones
fuzzer|clang++|libclang-rt-dev|fuzzing
openmp|clang++|libomp-dev|OpenMP of what clang++ builds
command|chromium|chromium|opens the report page as readers do
command|xmllint|libxml2-utils|holds JUnit files and pages against their schemas
command|groff|groff-base|formats the manual page
command|python3|python3|drives it
python|pytest|python3-pytest|runs the example of a test suite
LIST
  [ "$1" = oracle ] && echo 'python|torch|python3-torch|PyTorch, against which the textbook is tested'
  [ "$1" = cross ] && cat <<'LIST'
command|mmdebstrap|mmdebstrap|unpacks Debian's arm64 packages
command|aarch64-linux-gnu-g++|g++-aarch64-linux-gnu|C++ compiler for arm64
command|qemu-aarch64-static|qemu-user-static|runs programs of arm64
LIST
  return 0
}

have_dependency() { # kind probe
  case $1 in
    command) command -v "$2" >/dev/null 2>&1 ;;
    header) command -v c++ >/dev/null 2>&1 && printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$2" | c++ -std=c++20 -fsyntax-only -x c++ - 2>/dev/null ;;
    file) [ -e "$2" ] ;;
    fuzzer) printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' | "$2" -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null ;;
    openmp) printf '#include <omp.h>\nint main() { return omp_get_max_threads() == 0; }' | "$2" -fopenmp -x c++ - -o /dev/null 2>/dev/null ;;
    python) (cd / && /usr/bin/python3 -c "import $2") >/dev/null 2>&1 ;;
    library) command -v c++ >/dev/null 2>&1 && [ "$(c++ -print-file-name="$2")" != "$2" ] ;;
  esac
}

# Prints "package|purpose|probe" for each missing dependency.
missing_dependencies() { # run|tests|oracle|cross
  gpubench_dependencies "$1" | while IFS='|' read -r kind probe package purpose; do
    have_dependency "$kind" "$probe" || printf '%s|%s|%s\n' "$package" "$purpose" "$probe"
  done
}

list_missing() {
  printf '%s\n' "$1" | while IFS='|' read -r package purpose probe; do
    printf '  %-20s %s (%s)\n' "$package" "$purpose" "$probe" >&2
  done
}

# Installs missing packages with apt, or fails with their list. Prints to standard error only.
ensure_dependencies() { # run|tests|oracle|cross
  missing=$(missing_dependencies "$1")
  [ -z "$missing" ] && return 0
  packages=$(printf '%s\n' "$missing" | cut -d'|' -f1 | sort -u | tr '\n' ' ')
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "gpubench: these are missing, and there is no apt here to install them (Debian's package names):" >&2
    list_missing "$missing"
    echo "gpubench: install them with this system's package manager, then run this again" >&2
    return 3
  fi
  as_root=
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "gpubench: these are missing, and installing them needs root (no sudo here):" >&2
      list_missing "$missing"
      echo "gpubench: as root, run: apt-get install --no-install-recommends $packages" >&2
      return 3
    fi
    as_root=sudo
  fi
  echo "gpubench: installing with apt${as_root:+ through sudo}: $packages" >&2
  if [ -n "$as_root" ] && on_a_terminal && ! agreed; then
    echo "gpubench: nothing was installed; as root, run: apt-get install --no-install-recommends $packages" >&2
    return 3
  fi
  log=$(mktemp)
  waited_s=0
  # $packages is split into words.
  # shellcheck disable=SC2086
  if ! { apt_get update && apt_get install -y --no-install-recommends $packages; }; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    if [ -n "$busy" ]; then
      echo "gpubench: apt was still busy after $apt_wait_minutes minutes; run this again once that process has ended, or: apt-get install --no-install-recommends $packages" >&2
      return 3
    fi
    echo "gpubench: apt could not install what is missing:" >&2
    list_missing "$missing"
    echo "gpubench: once the package source is reachable, run this again, or: apt-get install --no-install-recommends $packages" >&2
    return 3
  fi
  rm -f "$log"
}

# Whether a user can answer; without a terminal, as in CI, the message alone must suffice.
on_a_terminal() { [ -t 0 ] && [ -t 2 ]; }
agreed() {
  printf 'gpubench: may it? [y/N] ' >&2
  IFS= read -r answer || return 1
  case $answer in y | Y | yes) ;; *) return 1 ;; esac
}

# apt-get as root, logged to $log. Waits while another process holds a lock, with one message. DPkg::Lock::Timeout does not
# cover the lock of `update` (apt 2.6 and 3.0). Sets $busy to the message of the lock if it is still held at the end.
apt_wait_minutes=10
apt_get() {
  until $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
      -o Acquire::https::Timeout=20 -o APT::Update::Error-Mode=any "$@" >"$log" 2>&1; do
    busy=$(sed -n '/Could not get lock/{s/^[EW]: //;p;q;}' "$log")
    if [ -z "$busy" ] || [ "$waited_s" -ge $((apt_wait_minutes * 60)) ]; then return 1; fi
    [ "$waited_s" != 0 ] || echo "gpubench: apt is busy ($busy); waiting up to $apt_wait_minutes minutes" >&2
    sleep 5
    waited_s=$((waited_s + 5))
  done
}
# Whether a GPU driver runs here; whether there is nvcc (scripts/bootstrap --cuda fetches one).
has_nvidia_driver() { [ -e /proc/driver/nvidia/version ] || [ -e /dev/dxg ]; }
has_nvcc() { [ -e .cuda/nvidia/cu13/.complete ] || [ -n "${CUDACXX:-}" ] || command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ]; }

# Installs the Python wheels listed in file $1, pinned by hash, into folder $2. $3: advice if they cannot be fetched.
fetch_wheels() {
  if ! python3 -m pip --version >/dev/null 2>&1; then
    (gpubench_dependencies() { echo 'command|pip3|python3-pip|fetches Python wheels'; } && ensure_dependencies run) || return
  fi
  log=$(mktemp)
  if ! python3 -m pip install --quiet --no-deps --only-binary :all: --require-hashes --upgrade --target "$2" --requirement "$1" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    echo "gpubench: the wheels could not be fetched; $3, or try again" >&2
    return 3
  fi
  rm -f "$log"
}

# The disassembler for the test of kernels' machine code. Toolkits often lack it.
ensure_disassembler() {
  for tool in cuobjdump nvdisasm; do
    command -v "$tool" >/dev/null 2>&1 || [ -x "/usr/local/cuda/bin/$tool" ] || [ -x ".cuda/tools/nvidia/cu13/bin/$tool" ] || {
      echo "gpubench: fetching cuobjdump and nvdisasm as Python wheels into .cuda/tools (5 MB)" >&2
      fetch_wheels scripts/cuda-tools.txt .cuda/tools "install cuobjdump and nvdisasm of the CUDA toolkit instead"
      return
    }
  done
}

# Dependencies of the textbook's oracles: PyTorch and ONNX's node vectors.
ensure_oracles() {
  ensure_dependencies oracle || return
  [ -d .oracle/onnx/onnx/backend/test/data/node ] || {
    echo "gpubench: fetching ONNX's node vectors as a Python wheel into .oracle (18 MB)" >&2
    fetch_wheels scripts/onnx-vectors.txt .oracle/onnx "the tests of the label oracle say what is left out"
  }
}

# Prints the options (-DNAME=VALUE) that differ from the configuration of the build folder $1.
options_that_differ() {
  configured=$1/CMakeCache.txt
  shift
  for option; do
    given=${option#-D}
    sed -n "s/^${given%%=*}:[A-Z]*=//p" "$configured" 2>/dev/null | grep -qxF -e "${given#*=}" || printf '%s\n' "$option"
  done
}

# Runs ninja in folder $1 with targets $2... Without a terminal, prints a line of progress every 20 seconds, and errors.
ninja_with_progress() {
  folder=$1
  shift
  if [ -t 2 ]; then
    ninja -C "$folder" "$@" >&2
    return
  fi
  # A shell loop, since implementations of awk differ in their buffering.
  { NINJA_STATUS='[%f/%t %e] ' ninja -C "$folder" "$@" 2>&1 && echo '[done]' || echo '[failed]'; } | (
    told=0 result=1
    while IFS= read -r line; do
      case $line in
        '[done]') result=0 ;;
        '[failed]' | 'ninja: Entering'*) ;;
        '['[0-9]*/[0-9]*' '[0-9]*.[0-9]*']'*)
          steps=${line%% *} steps=${steps#?} seconds=${line#* } seconds=${seconds%%.*}
          if [ "$seconds" -ge $((told + 20)) ] || [ "${steps%/*}" = "${steps#*/}" ]; then
            echo "gpubench: ${steps%/*} of ${steps#*/} built, $seconds s"
            told=$seconds
          fi ;;
        *) printf '%s\n' "$line" ;;
      esac
    done
    exit "$result"
  ) >&2
}

# Builds the CMake preset $1; silent if nothing is to do. $2: run|tests|cross, $3...: targets.
# $cuda: "on" builds the CUDA module; default: if a driver runs. $architectures: GPUs ("80-real;90"); default: this machine's,
# or one. Sanitizer presets, and machines without nvcc, ignore both.
build_preset() {
  preset=$1 purpose=$2
  shift 2
  folder=build
  [ "$preset" = default ] || folder=build-$preset
  stamp=$folder/.dependencies-$purpose
  if [ ! -e "$stamp" ] || [ scripts/dependencies.sh -nt "$stamp" ]; then
    ensure_dependencies "$purpose" || return
    mkdir -p "$folder" && : >"$stamp"
  fi
  # Running needs no test library. A folder configured with tests or CUDA keeps them.
  options=
  [ "$purpose" = tests ] && options=-DGPUBENCH_TESTS=ON
  [ "$purpose" = run ] && [ ! -e "$folder/build.ninja" ] && options=-DGPUBENCH_TESTS=OFF
  case $preset in
    default | package)
      if has_nvcc && { [ -n "${cuda:-}" ] || has_nvidia_driver; }; then
        options="$options -DGPUBENCH_CUDA_MODULE=ON"
        [ -z "${architectures:-}" ] || options="$options -DGPUBENCH_CUDA_ARCHITECTURES=$architectures"
      fi ;;
  esac
  # $options is split into words.
  # shellcheck disable=SC2086
  if [ ! -e "$folder/build.ninja" ] || [ -n "$(options_that_differ "$folder" $options)" ]; then
    echo "gpubench: configuring ($folder)" >&2
    if ! cmake --preset "$preset" $options >"$folder/configure.log" 2>&1; then
      cat "$folder/configure.log" >&2
      rm -f "$stamp" "$folder/build.ninja"
      echo "gpubench: configuring failed" >&2
      return 3
    fi
  fi
  # In a dry run, step 0 is CMake's search for new headers; later steps are work. A dry run ends at a CMake run; if it fails,
  # the build itself prints the reason.
  if todo=$(ninja -C "$folder" -n "$@" 2>/dev/null) && ! printf '%s\n' "$todo" | grep -qE '^\[[1-9]|Re-running CMake'; then
    return 0
  fi
  echo "gpubench: building ($folder; a first build takes minutes)" >&2
  begun=$(date +%s)
  ninja_with_progress "$folder" "$@" || { echo "gpubench: the build failed" >&2; return 3; }
  echo "gpubench: built ($folder) in $(($(date +%s) - begun)) s" >&2
}
