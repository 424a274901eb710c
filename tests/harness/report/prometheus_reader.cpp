#include "tests/harness/report/format_readers.h"

#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>

#include "harness/report/json.h"

namespace gpubench::prometheus {
namespace {

bool is_name(std::string_view text, bool colons) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9') && !(colons && c == ':')) return false;
  }
  return true;
}

// A line of a sample: name [ "{" label { "," label } "}" ] " " value, without a timestamp.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  Sample sample() {
    Sample sample;
    sample.metric = std::string(taken_until("{ "));
    require(is_name(sample.metric, true), "the metric's name");
    if (take('{')) {
      do label(sample);
      while (take(','));
      require(take('}'), "the end of the labels");
    }
    require(take(' '), "a blank before the value");
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), sample.value);
    require(error == std::errc() && end == rest_.data() + rest_.size() && std::isfinite(sample.value),
            "one finite number and nothing after it");
    return sample;
  }

 private:
  void label(Sample& sample) {
    const std::string key(taken_until("="));
    require(is_name(key, false), "a label's name");
    require(take('=') && take('"'), "a label's value in quotes");
    std::string value;
    while (!rest_.empty() && rest_[0] != '"') {
      if (take('\\')) {
        require(!rest_.empty() && std::string_view("\\\"n").find(rest_[0]) != std::string_view::npos, "an escape");
        value += rest_[0] == 'n' ? '\n' : rest_[0];
      } else {
        value += rest_[0];
      }
      rest_.remove_prefix(1);
    }
    require(take('"'), "the end of a label's value");
    require(sample.labels.emplace(key, value).second, "each label once");
  }

  std::string_view taken_until(std::string_view ends) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void require(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error("expected " + what + " at: " + std::string(rest_));
  }

  std::string_view rest_;
};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

}  // namespace

std::vector<Sample> samples_of(const std::string& text) {
  require(!text.empty() && text.back() == '\n', "a newline at the end");
  (void)Json(text).dump();
  std::vector<Sample> samples;
  std::set<std::string> families;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> series;
  std::string family;
  bool typed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.rfind("# HELP ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
      typed = false;
      require(is_name(family, true), "a family's name: " + line);
      require(families.insert(family).second, "each family once, all its samples together: " + line);
      require(line.find('\\') == std::string::npos, "no escapes in the help: " + line);
    } else if (line.rfind("# ", 0) == 0) {
      require(line == "# TYPE " + family + " gauge", "the type of the family that began: " + line);
      require(!typed, "the type once: " + line);
      require(samples.empty() || samples.back().metric != family, "the type before the samples: " + line);
      typed = true;
    } else {
      samples.push_back(Line(line).sample());
      require(samples.back().metric == family && typed, "a sample of the family that began, with its type: " + line);
      require(series.insert({family, samples.back().labels}).second, "each series once: " + line);
    }
  }
  return samples;
}

std::vector<Sample> of_metric(const std::vector<Sample>& samples, const std::string& metric) {
  std::vector<Sample> found;
  for (const Sample& sample : samples) {
    if (sample.metric == metric) found.push_back(sample);
  }
  return found;
}

}  // namespace gpubench::prometheus
