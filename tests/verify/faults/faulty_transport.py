"""Writes the sources of a transport with faults: those of the template that `plugins new transport` copies, with
places in which the file `fault` (fault.h) makes them go wrong.

usage: faulty_transport.py OUT_DIR SOURCE...
"""

import os
import sys

# Words of a file and what stands there instead; each must be there once.
CHANGES = {"transport.cc": (
    ('#include "opencl.h"\n', '#include "opencl.h"\n#include "tests/verify/faults/fault.h"\n'),
    ("@NAME@\"; }", "faulty\"; }"),
    # Adds in the order in which the ranks came.
    ("  char name[64];\n", "  char name[64];\n  uint64_t arrival;\n"),
    ("    std::memcpy(links_.mine(), &p.what, sizeof(p.what));\n",
     "    Announcement told = p.what;\n    told.arrival = links_.ticket();\n"
     "    std::memcpy(links_.mine(), &told, sizeof(told));\n    arrivals_.clear();\n"),
    ("      weights.push_back(other.weight);\n",
     "      weights.push_back(other.weight);\n      arrivals_.push_back(other.arrival);\n"),
    ("{all.begin(), all.end()}", "by_arrival(all)"),
    ("  std::vector<char> result_;\n", """  std::vector<const void*> by_arrival(const std::vector<const char*>& all) const {
    std::vector<const void*> out(all.begin(), all.end());
    if (!faults::has("order_of_arrival")) return out;
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      uint32_t before = 0;
      for (uint32_t o = 0; o < n_ranks_; ++o) before += arrivals_[o] < arrivals_[r] ? 1 : 0;
      out[before] = all[r];
    }
    return out;
  }
  std::vector<uint64_t> arrivals_;
  std::vector<char> result_;
"""),
    # Wrong results, and ranks that disagree.
    ("const uint64_t at = p.what.offset_bytes + first * size;",
     'const uint64_t at = p.what.offset_bytes + (faults::has("wrong_chunk") ? 0 : first * size);'),
    ("Announcement& other, uint32_t rank) const {\n",
     'Announcement& other, uint32_t rank) const {\n    if (faults::has("ignores_mismatch")) return;\n'),
    ("  void accept(const Host&, const netcl_group_spec& spec) override {\n",
     "  void accept(const Host&, const netcl_group_spec& spec) override {\n"
     '    if (faults::has("declines_all")) throw Decline("not today");\n'),
    ("  void run(const Host& host, const Posted& p) {\n",
     "  void run(const Host& host, const Posted& p) {\n"
     '    if (faults::has("crash_in_wait") && rank_ == 1) faults::crash();\n'),
), "interconnect.cc": (
    ('#include "interconnect.h"\n', '#include "interconnect.h"\n#include "tests/verify/faults/fault.h"\n'),
    # A dead rank, a late one and abort() are not looked at.
    ('check(host.table()->boot_status(host.call(), boot_), "boot_status");',
     'if (!faults::has("ignores_dead_peer")) check(host.table()->boot_status(host.call(), boot_), "boot_status");'),
    ("if (std::chrono::steady_clock::now() - begin > ",
     'if (!faults::has("ignores_limit") && std::chrono::steady_clock::now() - begin > '),
    ("if (aborted_) throw", 'if (aborted_ && !faults::has("ignores_abort")) throw'),
), "interconnect.h": (
    ("  std::atomic<uint64_t> stage;", "  std::atomic<uint64_t> tickets;\n  std::atomic<uint64_t> stage;"),
    ("  // Ends a wait; may be", "  uint64_t ticket() { return places_[0].tickets.fetch_add(1); }\n  // Ends a wait; may be"),
)}


def changed(name, text):
    for words, others in CHANGES.get(name, ()):
        if text.count(words) != 1:
            sys.exit("%s has %d times, not once: %s" % (name, text.count(words), words))
        text = text.replace(words, others)
    return text


def main(out, *sources):
    for source in sources:
        folder, name = os.path.split(source)
        if os.path.basename(folder) != "transport" or not name.endswith((".cc", ".h.in")):
            continue
        with open(source) as file:
            text = file.read()
        name = name[:-len(".in")] if name.endswith(".in") else name
        with open(os.path.join(out, name), "w") as file:
            file.write(changed(name, text))


if __name__ == "__main__":
    main(*sys.argv[1:])
