"""Writes the sources of a transport with faults: those of the template that `plugins new transport` copies, with
places in which the file `fault` (fault.h) makes them go wrong.

usage: faulty_transport.py OUT_DIR SOURCE...
"""

import os
import sys

# Words of transport.cc and what stands there instead; each must be there once.
CHANGES = (
    ('#include "opencl.h"\n', '#include "opencl.h"\n#include "tests/verify/faults/fault.h"\n'),
    ("@NAME@\"; }", "faulty\"; }"),
    # A dead rank, a late one and abort() are not looked at.
    ('check(host.table()->boot_status(host.call(), boot_), "boot_status");',
     'if (!faults::has("ignores_dead_peer")) check(host.table()->boot_status(host.call(), boot_), "boot_status");'),
    ("if (std::chrono::steady_clock::now() - begin > ",
     'if (!faults::has("ignores_limit") && std::chrono::steady_clock::now() - begin > '),
    ("if (aborted_) throw", 'if (aborted_ && !faults::has("ignores_abort")) throw'),
    # Adds in the order in which the ranks came.
    ("  Announcement announced;\n", "  Announcement announced;\n  std::atomic<uint64_t> tickets;\n  uint64_t arrival;\n"),
    ("    places_[rank_].announced = p.what;\n",
     "    places_[rank_].arrival = places_[0].tickets.fetch_add(1);\n    places_[rank_].announced = p.what;\n"),
    ("in.push_back(slot(r));", "in.push_back(slot(by_arrival(r)));"),
    ("  char* slot(uint32_t rank) const", """  uint32_t by_arrival(uint32_t place) const {
    if (!faults::has("order_of_arrival")) return place;
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      uint32_t before = 0;
      for (uint32_t o = 0; o < n_ranks_; ++o) before += places_[o].arrival < places_[r].arrival ? 1 : 0;
      if (before == place) return r;
    }
    return place;
  }

  char* slot(uint32_t rank) const"""),
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
)


def changed(text):
    for words, others in CHANGES:
        if text.count(words) != 1:
            sys.exit("transport.cc has %d times, not once: %s" % (text.count(words), words))
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
            file.write(changed(text) if name == "transport.cc" else text)


if __name__ == "__main__":
    main(*sys.argv[1:])
