#include "harness/cli/working_children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "harness/cli/device.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/run/child_process.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

constexpr std::size_t most_said = 500;  // bytes: an id has at most 200 characters
constexpr int given_output = 3, given_page = 4;
constexpr int look_again_ms = 20;
constexpr double least_start_s = 60.0;  // until it tells something: it loads libraries and opens its device
constexpr double end_s = 2.0;           // for the end of a child that was killed, or that has closed its output
constexpr double asked_end_s = 10.0;    // of one that was asked to stop: it tells what it has
constexpr std::size_t longest_line = std::size_t{64} << 20U;

}  // namespace

// Two places for the text, so that whoever reads finds one that is whole.
struct WorkPage::Content {
  std::atomic<std::uint64_t> beats;
  std::atomic<std::uint64_t> texts;
  std::array<std::array<char, most_said + 1>, 2> text;
};

void WorkPage::map(int fd) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "two processes share them");
  void* memory = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw CannotMeasure(fmt::format("cannot share a page: {}", std::strerror(errno)));
  content_ = static_cast<Content*>(memory);  // zeros are what it begins with
}

WorkPage::WorkPage() : file_(::memfd_create("gpubench-work", MFD_CLOEXEC)) {
  if (file_.get() < 0 || ::ftruncate(file_.get(), sizeof(Content)) != 0)
    throw CannotMeasure(fmt::format("cannot make a page to share: {}", std::strerror(errno)));
  map(file_.get());
}

WorkPage::WorkPage(int fd) { map(fd); }

WorkPage::~WorkPage() { ::munmap(content_, sizeof(Content)); }

void WorkPage::say(std::string_view what) {
  const std::uint64_t number = content_->texts.load(std::memory_order_relaxed) + 1;
  std::array<char, most_said + 1>& text = content_->text[number % 2];
  const std::size_t length = std::min(what.size(), most_said);
  std::memcpy(text.data(), what.data(), length);
  text[length] = '\0';
  content_->texts.store(number, std::memory_order_release);
  beat();
}

void WorkPage::beat() { content_->beats.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t WorkPage::beats() const { return content_->beats.load(std::memory_order_relaxed); }

std::string WorkPage::said() const {
  const std::array<char, most_said + 1>& text = content_->text[content_->texts.load(std::memory_order_acquire) % 2];
  return {text.data(), ::strnlen(text.data(), most_said)};
}

struct WorkingChildren::Child {
  WorkPage page;
  Descriptor output;
  std::unique_ptr<ChildEnd> end;
  std::string pending;
  std::string trouble;  ///< once it has been ended, or has ended
  bool listened_to = true;
  bool has_told = false;
  std::uint64_t beats = 0;
  Stopwatch silence;
  std::optional<double> waited_before_s;  ///< for a processor, when half of the silence that it may have was over

  void heard() {
    silence = Stopwatch();
    waited_before_s.reset();
  }
  void signal_group(int signal) const { ::kill(-end->pid(), signal); }
  void kill() {
    signal_group(SIGKILL);
    (void)end->within(end_s);
  }
};

WorkingChildren::WorkingChildren(double silence_s) : silence_s_(silence_s) {}

WorkingChildren::~WorkingChildren() {
  for (const std::unique_ptr<Child>& child : children_) {
    if (!child->end->ended()) child->kill();
  }
}

void WorkingChildren::start(std::vector<std::string> argv) {
  auto child = std::make_unique<Child>();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw CannotMeasure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  child->output = Descriptor(ends[0]);
  const Descriptor writing(ends[1]);
  argv.insert(argv.end(),
              {"--worker-output", std::to_string(given_output), "--worker-page", std::to_string(given_page)});
  try {
    // A group of its own: Ctrl-C at the terminal reaches this process alone, which passes it on once.
    child->end = std::make_unique<ChildEnd>(
        start_child(argv, {.descriptors = {{given_output, writing.get()}, {given_page, child->page.fd()}},
                           .leads_group = true,
                           .yields = true}));
  } catch (const BackendError& e) {
    throw CannotMeasure(e.what());
  }
  children_.push_back(std::move(child));
}

std::string WorkingChildren::now(std::size_t child) const { return children_.at(child)->page.said(); }

// False at the end of what it tells.
bool WorkingChildren::hear(Child& child, std::size_t number, const Told& told) const {
  char block[65536];
  const ssize_t count = ::read(child.output.get(), block, sizeof block);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0 || child.pending.size() > longest_line) return false;
  child.heard();
  child.has_told = true;
  child.pending.append(block, static_cast<std::size_t>(count));
  std::size_t begin = 0;
  for (std::size_t end = child.pending.find('\n'); end != std::string::npos; end = child.pending.find('\n', begin)) {
    if (end > begin && child.pending[begin] == 'A')
      told.found(number, child.pending.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  child.pending.erase(0, begin);
  return true;
}

void WorkingChildren::look_for_silence(Child& child) const {
  if (const std::uint64_t beats = child.page.beats(); beats != child.beats) {
    child.beats = beats;
    child.heard();
    return;
  }
  const double silent_s = child.silence.seconds();
  const double limit_s = child.has_told ? silence_s_ : std::max(silence_s_, least_start_s);
  if (silence_s_ <= 0.0 || silent_s <= limit_s / 2.0) return;
  // On a busy machine, time in which it wanted a processor and had none does not count, as for the workers of a run.
  const double waited_s = waited_for_processor_s(child.end->pid());
  if (!child.waited_before_s) child.waited_before_s = waited_s;
  if (silent_s - (waited_s - *child.waited_before_s) <= limit_s) return;
  child.trouble = fmt::format("said nothing for {:.3g} s", limit_s);
  child.kill();
}

void WorkingChildren::end(Child& child, std::size_t number, const Told& told) const {
  child.listened_to = false;
  if (!child.end->within(end_s)) {
    child.kill();
    if (child.trouble.empty()) child.trouble = "did not end";
  } else if (child.trouble.empty() && child.end->status() != 0) {
    child.trouble = child.end->description();
  }
  child.signal_group(SIGKILL);  // what it may have started itself
  if (const std::string now = child.page.said(); !child.trouble.empty() && !now.empty())
    child.trouble += " in " + visible(now);
  if (told.ended) told.ended(number, child.trouble);
}

std::vector<std::string> WorkingChildren::listen(const StopFlag& stop, const Told& told) {
  std::optional<Stopwatch> asked;
  while (std::ranges::any_of(children_, [](const auto& child) { return child->listened_to; })) {
    if (const int signal = stop.load(); signal != 0 && !asked) {
      asked.emplace();
      for (const auto& child : children_) {
        if (child->listened_to) child->signal_group(signal);
      }
    }
    std::vector<pollfd> readable;
    for (const auto& child : children_)
      readable.push_back({child->listened_to ? child->output.get() : -1, POLLIN, 0});  // -1: not looked at
    (void)::poll(readable.data(), readable.size(), look_again_ms);
    for (std::size_t i = 0; i < readable.size(); ++i) {  // more may be started meanwhile
      Child& child = *children_[i];
      if (!child.listened_to) continue;
      if (asked && asked->seconds() > asked_end_s) child.kill();
      if (readable[i].revents != 0 && !hear(child, i, told)) {
        end(child, i, told);
        continue;
      }
      look_for_silence(child);
    }
    if (told.tick) told.tick();
  }
  std::vector<std::string> troubles;
  for (const auto& child : children_) troubles.push_back(child->trouble);
  return troubles;
}

}  // namespace gpubench
