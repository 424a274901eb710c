// Exceptions that end a case or the program. Verdicts on results are values (record.h), never exceptions.
//
// UsageError: exit 2 before anything ran. CannotMeasure: exit 3. Unsupported: the case is `unsupported` with this
// reason. BackendError: the case is `error`.
#pragma once

#include <stdexcept>
#include <string>

namespace gpubench {

/// The user's input (flag, name, value, file) is wrong.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& what) : std::runtime_error(what) {}
};

/// A backend lacks an op, a type or a layout; the message is the library's.
class Unsupported : public std::runtime_error {
 public:
  explicit Unsupported(const std::string& what) : std::runtime_error(what) {}
};

/// A library call or a device failed at something it supports.
class BackendError : public std::runtime_error {
 public:
  explicit BackendError(const std::string& what) : std::runtime_error(what) {}
};

/// The device or its driver context is lost: no later call of this process is trustworthy. The case is `error`, and a
/// worker ends so that the next case gets a fresh one.
class DeviceLost : public BackendError {
 public:
  explicit DeviceLost(const std::string& what) : BackendError(what) {}
};

/// Measuring is impossible here; the program ends with exit code 3 and this text.
class CannotMeasure : public std::runtime_error {
 public:
  explicit CannotMeasure(const std::string& what) : std::runtime_error(what) {}
};

/// An invalid program (a shape that does not fit, a value produced twice): a defect in a workload.
class ProgramError : public std::logic_error {
 public:
  explicit ProgramError(const std::string& what) : std::logic_error(what) {}
};

}  // namespace gpubench
