"""The best parameters that clblast_tuner_xgemm has printed, as NAME=VALUE words.

  clblast_tuner_xgemm ... | tuned_xgemm.py
"""

import re
import sys


def main():
    names, best, best_ms = [], None, float("inf")
    for line in sys.stdin:
        line = re.sub(r"\x1b\[[0-9;]*m", "", line)
        if "Parameters explored:" in line:
            names = line.split("Parameters explored:")[1].split()
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 10 or "results match" not in cells[-2]:
            continue
        values, ms = cells[3].split(), float(cells[7].split()[0])
        if len(values) == len(names) and ms < best_ms:
            best, best_ms = values, ms
    if best is None:
        sys.exit("tuned_xgemm.py: the tuner printed no right result; expected rows with `results match`")
    print(*("%s=%s" % pair for pair in zip(names, best)))


if __name__ == "__main__":
    main()
