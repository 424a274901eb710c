// The only door to oneDNN: neutral structs in, bound work out. Version 2 and 3 of its interface differ in how primitives
// are made; onednn.cpp is the only file that knows. https://uxlfoundation.github.io/oneDNN
#pragma once

#include <memory>
#include <string>

namespace gpubench::cpu {

/// oneDNN's CPU engine and the stream that all work of one rank runs on.
class OneDnn {
 public:
  struct State;

  /// Throws BackendError when the library cannot make a CPU engine.
  OneDnn();
  ~OneDnn();
  OneDnn(const OneDnn&) = delete;
  OneDnn& operator=(const OneDnn&) = delete;

  /// The version that really runs, "2.6.3 (52b5f107dd9cf10910aaa19cb47f3abf9b349815)".
  [[nodiscard]] std::string version() const;

  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gpubench::cpu
