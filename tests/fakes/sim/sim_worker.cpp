// The worker of the isolation tests: the sim suite on a sim backend with the script of --script. More flags:
//   --babble      writes bytes to the pipe that are not a message
//   --cut-short   writes half a message and exits
//   --oversized   writes the start of a message above the size limit
//   --stillborn   exits before reading
//   --beats N     announces the first case, then sends N beats, 20 ms apart, before it starts
//   --mute        announces the first case and stays silent
//   --toil S      announces the first case and computes for S seconds of CPU time first
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <string_view>

#include "harness/run/run.h"
#include "harness/run/wire.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/fakes/sim/sim_suite.h"

namespace {

void announce_and_beat(int output, int beats) {
  using gpubench::FrameKind;
  gpubench::write_frame(output, {FrameKind::phase, "0 check"});
  for (; beats > 0; --beats) {
    ::usleep(20'000);
    gpubench::write_frame(output, {FrameKind::beat, ""});
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string script;
  int input = -1;
  int output = -1;
  int beats = 0;
  double toil_s = 0.0;
  bool babble = false, cut_short = false, oversized = false, mute = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--stillborn") return 7;
    if (flag == "--babble") babble = true;
    if (flag == "--mute") mute = true;
    if (flag == "--cut-short") cut_short = true;
    if (flag == "--oversized") oversized = true;
    if (i + 1 >= argc) continue;
    if (flag == "--script") script = argv[++i];
    if (flag == "--beats") beats = std::atoi(argv[++i]);
    if (flag == "--toil") toil_s = std::atof(argv[++i]);
    if (flag == "--worker-input") input = std::atoi(argv[++i]);
    if (flag == "--worker-output") output = std::atoi(argv[++i]);
  }
  if (babble) {
    constexpr std::string_view noise = "Segmentation fault (core dumped)\n";
    if (::write(output, noise.data(), noise.size()) < 0) return 8;
  }
  if (beats > 0 || mute || toil_s > 0.0) announce_and_beat(output, beats);
  while (mute) ::pause();
  const std::clock_t end = std::clock() + static_cast<std::clock_t>(toil_s * CLOCKS_PER_SEC);
  while (toil_s > 0.0 && std::clock() < end) {
  }
  if (cut_short || oversized) {
    std::string message = gpubench::encode_frame({gpubench::FrameKind::note, "a note"});
    if (oversized) message.replace(4, 4, "\xff\xff\xff\x7f");  // its length
    if (cut_short) message.resize(message.size() / 2);
    if (::write(output, message.data(), message.size()) < 0) return 8;
    if (cut_short) return 0;
  }
  std::cout << "workers may print what they like\n" << std::flush;
  const std::unique_ptr<gpubench::Backend> backend = gpubench::open_sim_backend(script);
  const auto cases = gpubench::sim::sim_cases();
  gpubench::RunOptions options;
  options.tier = gpubench::Tier::smoke;
  return gpubench::serve(*backend, cases, options, gpubench::sim::TextCodec(), input, output);
}
