// Feeds a target its corpus, and damaged copies of it, without a fuzzer: what continuous
// integration runs. The damage is the same at every run.
//
// Usage: PROGRAM FOLDER...     every file below FOLDER is an input
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

constexpr int kCopies = 300;  // damaged ones of every input

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Cuts, doubles, swaps and changes pieces.
std::string damaged(const std::string& input, std::mt19937& bits) {
  std::string out = input;
  const auto place = [&] { return out.empty() ? 0 : bits() % out.size(); };
  for (uint32_t n = 1 + bits() % 4; n > 0; --n) {
    const size_t at = place(), length = std::min<size_t>(bits() % 16, out.size() - at);
    switch (bits() % 5) {
      case 0:
        out.erase(at, length);
        break;
      case 1:
        out.insert(at, out.substr(at, length));
        break;
      case 2:
        if (!out.empty()) out[at] = static_cast<char>(bits());
        break;
      case 3:
        out.insert(place(), std::string(1 + bits() % 3, "[{\"(-9.,}"[bits() % 9]));
        break;
      default:
        out.resize(at);
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::mt19937 bits(20261130);
  size_t runs = 0;
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    run(input);
    for (int i = 0; i < kCopies; ++i) run(damaged(input, bits));
    runs += 1 + kCopies;
  }
  std::printf("%zu inputs of %zu files\n", runs, files.size());
  return files.empty() ? 1 : 0;
}
