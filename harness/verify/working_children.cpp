#include "harness/verify/working_children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/run/child_process.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

constexpr std::size_t max_step_bytes = 500;  // bytes: an id has at most 200 characters
constexpr int given_output = 3, given_page = 4;
constexpr int poll_ms = 20;
constexpr double min_start_s = 60.0;   // until the first message: a child loads libraries and opens its device
constexpr double end_s = 2.0;          // after SIGKILL, or after a child has closed its output
constexpr double stop_grace_s = 10.0;  // after a request to stop: a child sends its findings
constexpr std::size_t longest_line = std::size_t{64} << 20U;

std::string after(std::string_view word, const std::string& doing) {
  return doing.empty() ? std::string() : fmt::format(" {} {}", word, doing);
}

}  // namespace

void end_with_parent(int output_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that ended earlier sends no signal, but its end of the pipe is closed.
  pollfd listened{output_fd, POLLOUT, 0};
  if (::poll(&listened, 1, 0) > 0 && (listened.revents & (POLLERR | POLLHUP)) != 0) ::_exit(1);
}

void ChildReporter::send(char kind, std::string_view line) const {
  const std::string text = kind + std::string(line) + '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = retried([&] { return ::write(fd_, rest.data(), rest.size()); });
    if (written < 0) throw CannotMeasure(fmt::format("cannot write to descriptor {}: {}", fd_, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Two buffers for the text, so that a reader finds a complete one.
struct WorkPage::Content {
  std::atomic<std::uint64_t> beats;
  std::atomic<std::uint64_t> texts;
  std::array<std::array<char, max_step_bytes + 1>, 2> text;
};

void WorkPage::map(int fd) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "two processes share them");
  void* memory = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw CannotMeasure(fmt::format("cannot map a shared page: {}", std::strerror(errno)));
  content_ = static_cast<Content*>(memory);  // valid as zeros
}

WorkPage::WorkPage() : file_(::memfd_create("gpubench-work", MFD_CLOEXEC)) {
  if (file_.get() < 0 || ::ftruncate(file_.get(), sizeof(Content)) != 0)
    throw CannotMeasure(fmt::format("cannot create a shared page: {}", std::strerror(errno)));
  map(file_.get());
}

WorkPage::WorkPage(int fd) { map(fd); }

WorkPage::~WorkPage() { ::munmap(content_, sizeof(Content)); }

void WorkPage::say(std::string_view what) {
  const std::uint64_t number = content_->texts.load(std::memory_order_relaxed) + 1;
  std::array<char, max_step_bytes + 1>& text = content_->text[number % 2];
  const std::size_t length = std::min(what.size(), max_step_bytes);
  std::memcpy(text.data(), what.data(), length);
  text[length] = '\0';
  content_->texts.store(number, std::memory_order_release);
  beat();
}

void WorkPage::beat() { content_->beats.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t WorkPage::beats() const { return content_->beats.load(std::memory_order_relaxed); }

std::string WorkPage::said() const {
  const std::array<char, max_step_bytes + 1>& text =
      content_->text[content_->texts.load(std::memory_order_acquire) % 2];
  return {text.data(), ::strnlen(text.data(), max_step_bytes)};
}

std::string ChildTrouble::text() const {
  if (kind == Kind::none) return "";
  const std::string what = kind == Kind::silent  ? fmt::format("said nothing for {:.3g} s", silent_s)
                           : kind == Kind::stays ? "did not end"
                                                 : end;
  return what + after("in", doing);
}

struct WorkingChildren::Child {
  std::optional<WorkPage> page;
  std::string call;  ///< the last announced call
  Descriptor output;
  std::optional<ChildEnd> end;
  std::string pending;
  ChildTrouble trouble;  ///< set at its end
  bool listened_to = true;
  bool has_reported = false;
  std::uint64_t beats = 0;
  Silence silence;

  [[nodiscard]] std::string doing() const { return page ? page->said() : call; }
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

void WorkingChildren::start(std::vector<std::string> argv, bool has_page, Printing printing) {
  auto child = std::make_unique<Child>();
  // A separate group: Ctrl-C at the terminal reaches only this process, which passes it on once.
  ChildSetup setup{.descriptors = {}, .leads_group = true, .yields = true};
  const Descriptor nowhere(printing == Printing::shown ? -1 : ::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (printing == Printing::dropped) setup.descriptors[STDERR_FILENO] = nowhere.get();
  argv.insert(argv.end(), {"--worker-output", std::to_string(given_output)});
  if (has_page) {
    setup.descriptors[given_page] = child->page.emplace().fd();
    argv.insert(argv.end(), {"--worker-page", std::to_string(given_page)});
  }
  try {
    auto [reading, writing] = make_pipe();
    setup.descriptors[given_output] = writing.get();
    child->output = std::move(reading);
    child->end.emplace(start_child(argv, setup));
  } catch (const BackendError& e) {
    throw CannotMeasure(e.what());
  }
  children_.push_back(std::move(child));
}

std::string WorkingChildren::now(std::size_t child) const { return children_.at(child)->doing(); }

// False at the end of the child's output.
bool WorkingChildren::hear(Child& child, std::size_t number, const Told& told) const {
  char block[65536];
  const ssize_t count = ::read(child.output.get(), block, sizeof block);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0 || child.pending.size() > longest_line) return false;
  child.silence = Silence();
  child.has_reported = true;
  child.pending.append(block, static_cast<std::size_t>(count));
  std::size_t begin = 0;
  for (std::size_t end = child.pending.find('\n'); end != std::string::npos; end = child.pending.find('\n', begin)) {
    const std::string line = child.pending.substr(begin, end - begin);
    if (line.starts_with('A')) told.found(number, line.substr(1));
    if (line.starts_with('C')) child.call = line.substr(1);
    begin = end + 1;
  }
  child.pending.erase(0, begin);
  return true;
}

bool WorkingChildren::is_silent(Child& child) const {
  if (child.page && child.page->beats() != child.beats) {
    child.beats = child.page->beats();
    child.silence = Silence();
  }
  const double limit_s = child.has_reported ? silence_s_ : std::max(silence_s_, min_start_s);
  if (silence_s_ <= 0.0 || !child.silence.exceeds(limit_s, child.end->pid())) return false;
  child.trouble = {.kind = ChildTrouble::Kind::silent, .silent_s = limit_s};
  return true;
}

void WorkingChildren::end(Child& child, std::size_t number, const Told& told) const {
  using Kind = ChildTrouble::Kind;
  child.listened_to = false;
  ChildTrouble& trouble = child.trouble;
  if (trouble.kind == Kind::none && !child.end->within(end_s)) {
    trouble.kind = Kind::stays;
  } else if (trouble.kind == Kind::none && child.end->status() != 0) {
    trouble = {.kind = Kind::ended, .end = child.end->description()};
  }
  child.kill();  // with its children
  if (trouble.kind != Kind::none) trouble.doing = visible(child.doing());
  if (told.ended) told.ended(number, trouble);
}

std::vector<ChildTrouble> WorkingChildren::listen(const StopFlag& stop, const Told& told) {
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
      readable.push_back({child->listened_to ? child->output.get() : -1, POLLIN, 0});  // -1: ignored
    (void)::poll(readable.data(), readable.size(), poll_ms);
    const double requested_s = asked ? asked->seconds() : 0.0;
    for (std::size_t i = 0; i < readable.size(); ++i) {  // start() may add children
      Child& child = *children_[i];
      if (!child.listened_to) continue;
      if (requested_s > stop_grace_s) child.kill();
      // A child in an uninterruptible wait survives SIGKILL with its output open.
      if ((readable[i].revents != 0 && !hear(child, i, told)) || requested_s > stop_grace_s + end_s || is_silent(child))
        end(child, i, told);
    }
    if (told.tick) told.tick();
  }
  std::vector<ChildTrouble> troubles;
  for (const auto& child : children_) troubles.push_back(child->trouble);
  return troubles;
}

ChildReply ask(std::vector<std::string> argv, double deadline_s, const StopFlag& stop, Printing printing) {
  WorkingChildren children(deadline_s);
  children.start(std::move(argv), false, printing);
  ChildReply heard;
  const auto give_up = [&] {  // at once: later output is not needed
    if (stop != 0) throw CannotMeasure("interrupted");
  };
  const StopFlag not_passed_on{0};
  const ChildTrouble trouble =
      children.listen(not_passed_on, {[&](std::size_t, const std::string& line) { heard.answer = line; }, give_up, {}})
          .front();
  if (trouble.kind == ChildTrouble::Kind::silent) {
    heard.trouble = fmt::format("does not answer ({}{:.3g} s)", trouble.doing.empty() ? "" : trouble.doing + ", ",
                                trouble.silent_s);
  } else if (trouble.kind == ChildTrouble::Kind::stays) {
    heard.trouble = "does not end" + after("after", trouble.doing);
  } else {
    heard.trouble = trouble.text();
  }
  return heard;
}

}  // namespace gpubench
