// Small text functions: nearest names for error messages, joining, globs.
#ifndef NETCL_CORE_BASE_TEXT_H_
#define NETCL_CORE_BASE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace netcl {

// Number of single-character insertions, deletions, substitutions and swaps of neighbours between
// a and b (optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate nearest to `name`, or "" when none is near enough to be a likely typing
// error (distance over a third of the longer length, at least 1).
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// Returns `; did you mean "x"?` for the nearest candidate, otherwise `; known: a, b, c`.
std::string suggest(std::string_view name, const std::vector<std::string>& candidates);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

std::vector<std::string> split(std::string_view text, char separator);

// True if `text` matches `pattern`, in which '*' stands for any run and '?' for one character.
bool glob_match(std::string_view pattern, std::string_view text);

// "12.3 ms": a duration, with two digits after the point below 10 ms and one above.
std::string milliseconds(double seconds);

// Lower-case ASCII copy.
std::string to_lower(std::string_view text);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_TEXT_H_
