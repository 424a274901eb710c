// Checked access to JSON from outside: types before values, and errors that name the place.
//
// nlohmann/json alone would wrap -1 to 1.8e19 and cut 3.9 to 3. Everything that gpubench reads (reports, choices of
// earlier runs, records from a worker) comes from json_parser.h and is read through Nodes.
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

/// A file or a pipe, whole; of what is too long one block more than `limits.bytes`, for the parser to refuse. Throws
/// ReadError where it cannot be read or is something else.
[[nodiscard]] std::string read_text(const std::string& path, const ReadLimits& limits = {});
/// Reads on from a descriptor; `path` is what messages name. Throws as above.
[[nodiscard]] std::string read_text(int fd, const std::string& path, const ReadLimits& limits);

/// Reads and parses a file or a pipe. Throws ReadError as above, and where it cannot be read or is something else.
[[nodiscard]] Json read_json_file(const std::string& path, const ReadLimits& limits = {});

/// A value with its place in the document. Accessors check kind and range and throw ReadError. Refers to the document.
class Node {
 public:
  /// `path`: of the value in its document; empty for the document itself.
  Node(const Json& json, std::string file, std::string path = {})
      : json_(&json), origin_(std::make_shared<const Origin>(Origin{std::move(file), std::move(path)})) {}

  /// Member of an object, element of an array; must exist.
  [[nodiscard]] Node at(std::string_view key) const;
  [[nodiscard]] Node at(std::size_t index) const;
  [[nodiscard]] bool has(std::string_view key) const;
  /// Elements of an array, members of an object.
  [[nodiscard]] std::size_t size() const;
  /// Elements of what must be an array.
  [[nodiscard]] std::size_t length() const;
  /// An object's members and their names, in the order of the document.
  [[nodiscard]] std::vector<std::pair<std::string, Node>> members() const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] bool is_null() const;
  /// A whole number written as one (3.0 is refused) in [low, high].
  [[nodiscard]] std::int64_t integer(std::int64_t low = 0,
                                     std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] std::uint64_t natural() const;
  [[nodiscard]] double number() const;
  /// One in [low, high].
  [[nodiscard]] double number(double low, double high) const;
  /// "2026-11-21T02:34:19+00:00", as iso_time() writes it.
  [[nodiscard]] std::time_t time() const;
  /// The number at `key`; for null, the non-finite number that the object's "nonfinite" note gives.
  [[nodiscard]] double number_or_note(std::string_view key) const;
  /// An array of such numbers; its notes are named "key[index]".
  [[nodiscard]] std::vector<double> numbers_or_notes(std::string_view key) const;

  /// "file:path: why", as refuse() throws it.
  [[nodiscard]] std::string complaint(std::string_view why) const;
  /// Throws ReadError for this place.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  struct Origin {
    std::string file;
    std::string path;
  };

  [[nodiscard]] Node child(const Json& value) const;
  /// Of an object; null where it has none of this name.
  [[nodiscard]] const Json* member(std::string_view key) const;
  [[nodiscard]] std::string path() const;
  /// A number as it stands, of everything else the kind.
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] double noted(std::string_view name) const;

  const Json* json_;
  std::shared_ptr<const Origin> origin_;
  // What it is in, from the value at the origin on. A path is put together only for a message: a report of 10,000
  // cases has a million values that are read.
  std::array<const Json*, 12> above_{};
  std::size_t levels_ = 0;
};

/// Problems as "file:path: why". The first ones are kept, the rest is counted, and after many the search ends.
class Problems {
 public:
  /// Thrown by add() once there are so many that more would be of no use. Not a ReadError, which would count as one
  /// more problem.
  class Enough : public std::runtime_error {
   public:
    Enough() : std::runtime_error("more problems than are counted") {}
  };

  static constexpr std::size_t most_kept = 50;
  static constexpr std::size_t most_counted = 1000;

  void add(std::string problem) {
    if (kept_.size() < most_kept) kept_.push_back(std::move(problem));
    if (++count_ == most_counted) throw Enough();
  }

  /// Calls `step`; what it refuses becomes a problem.
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
  /// The search ended before its end.
  [[nodiscard]] bool many() const { return count_ >= most_counted; }
  [[nodiscard]] const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

}  // namespace gpubench
