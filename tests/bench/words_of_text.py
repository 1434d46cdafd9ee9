#!/usr/bin/env python3
"""How many words that a trained character model writes are words of the text it was trained on.

Usage: words_of_text.py NETCL_APP CHECKPOINT TEXT [--words 2000] [further arguments of generate]

Generates until there are enough words and prints their number, the share that occurs in the text, and
some that do not. TEXT may end in .gz. Exit code 1 if the share is below 0.8.
"""
import argparse
import gzip
import json
import re
import subprocess
import sys


def words_of(text):
    return re.findall(r"[a-z]+", text.lower())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("app")
    parser.add_argument("checkpoint")
    parser.add_argument("text")
    parser.add_argument("--words", type=int, default=2000)
    options, further = parser.parse_known_args()
    read = gzip.open if options.text.endswith(".gz") else open
    with read(options.text, "rt", encoding="utf-8") as stream:
        known = set(words_of(stream.read()))
    # English words take less than six characters on average, with their spaces.
    command = [options.app, "generate", options.checkpoint, "--length", str(8 * options.words),
               "--json"] + further
    text = json.loads(subprocess.check_output(command))["text"]
    words = words_of(text)[: options.words + 1][:-1]
    if len(words) < options.words:
        sys.exit("only %d words in %d characters" % (len(words), len(text)))
    good = sum(word in known for word in words)
    print(text[:400])
    print("%d words, %.1f %% of them words of the text; others: %s" % (
        len(words), 100 * good / len(words), " ".join(sorted(set(words) - known)[:20])))
    sys.exit(0 if good >= 0.8 * len(words) else 1)


if __name__ == "__main__":
    main()
