// Checked access to untrusted JSON: types before values, errors with their place.
//
// nlohmann/json would wrap -1 to 1.8e19 and cut 3.9 to 3. All input of gpubench (reports, earlier choices, records from
// a worker) is parsed by json_parser.h and read through Nodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/report/json_parser.h"

namespace gpubench {

/// The content of a file or pipe; at most one block more than `limits.bytes`, for the parser to refuse. Throws
/// ReadError if it cannot be read or is of another kind.
[[nodiscard]] std::string read_text(const std::string& path, const ReadLimits& limits = {});
/// From a descriptor; `path`: for messages. Throws as above.
[[nodiscard]] std::string read_text(int fd, const std::string& path, const ReadLimits& limits);

/// Throws ReadError as parse_json() and read_text().
[[nodiscard]] Json read_json_file(const std::string& path, const ReadLimits& limits = {});

/// A value with its place in the document, to which it refers. Accessors check kind and range and throw ReadError.
class Node {
 public:
  /// `path`: of the value; empty for the document.
  Node(const Json& json, std::string file, std::string path = {})
      : json_(&json), origin_(std::make_shared<const Origin>(Origin{std::move(file), std::move(path)})) {}

  [[nodiscard]] Node at(std::string_view key) const;
  [[nodiscard]] Node at(std::size_t index) const;
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] std::size_t size() const;
  /// Elements; throws unless it is an array.
  [[nodiscard]] std::size_t length() const;
  [[nodiscard]] std::vector<std::pair<std::string, Node>> members() const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] bool is_null() const;
  /// A number in [low, high] without a decimal point (3.0 is refused).
  [[nodiscard]] std::int64_t integer(std::int64_t low = 0,
                                     std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] std::uint64_t natural() const;
  [[nodiscard]] double number() const;
  /// One in [low, high].
  [[nodiscard]] double number(double low, double high) const;
  /// "2026-11-21T02:34:19+00:00", as iso_time() writes it.
  [[nodiscard]] std::time_t time() const;
  /// The number at `key`; for null, the non-finite number in the object's "nonfinite" note.
  [[nodiscard]] double number_or_note(std::string_view key) const;
  /// An array of such numbers; notes are named "key[index]".
  [[nodiscard]] std::vector<double> numbers_or_notes(std::string_view key) const;

  /// "file:path: why", the text of refuse().
  [[nodiscard]] std::string complaint(std::string_view why) const;
  /// Throws ReadError for this place.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  struct Origin {
    std::string file;
    std::string path;
  };

  [[nodiscard]] Node child(const Json& value) const;
  [[nodiscard]] const Json* member(std::string_view key) const;
  [[nodiscard]] std::string path() const;
  /// The value of a number; the kind of other values.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] double noted(std::string_view name) const;

  const Json* json_;
  std::shared_ptr<const Origin> origin_;
  // The chain of values from the document, bounded. Paths are only built for messages: a report of 10,000 cases has a
  // million values.
  std::array<const Json*, 12> above_{};
  std::size_t levels_ = 0;
};

/// Problems as "file:path: why". Keeps the first, counts the others, and ends the search after many.
class Problems {
 public:
  /// Thrown by add() after many problems. Not a ReadError, which would count as one more.
  class Enough : public std::runtime_error {
   public:
    Enough() : std::runtime_error("too many problems") {}
  };

  static constexpr std::size_t max_kept = 50;
  static constexpr std::size_t max_counted = 1000;

  void add(std::string problem) {
    if (kept_.size() < max_kept) kept_.push_back(std::move(problem));
    if (++count_ == max_counted) throw Enough();
  }

  /// Adds a ReadError of `step` as a problem.
  template <class Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const ReadError& e) {
      add(e.what());
    }
  }

  [[nodiscard]] bool none() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool many() const { return count_ >= max_counted; }
  [[nodiscard]] const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

}  // namespace gpubench
