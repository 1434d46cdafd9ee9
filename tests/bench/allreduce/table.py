"""Prints medians and ratios of all-reduce times: table.py NAME=FILE... (the first is the subject).

The files hold lines "BYTES SECONDS".
"""
import collections
import statistics
import sys


def read(path):
    times = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            size, seconds = line.split()
            times[int(size)].append(float(seconds))
    return times


def name_of(size):
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size / 1024:g} KiB"


def main(arguments):
    columns = [(a.split("=", 1)[0], read(a.split("=", 1)[1])) for a in arguments]
    subject_name, subject = columns[0]
    print("| size | rounds | " + " | ".join(
        name + ", ms" if i == 0 else f"{name}, ms | {subject_name} / it"
        for i, (name, _) in enumerate(columns)) + " |")
    print("| --- | --- |" + " --- |" * (2 * len(columns) - 1))
    for size in sorted(subject):
        own = statistics.median(subject[size])
        cells = [f"{own * 1e3:.3f}"]
        for _, times in columns[1:]:
            if times[size]:
                other = statistics.median(times[size])
                cells += [f"{other * 1e3:.3f}", f"{own / other:.2f}"]
            else:
                cells += ["-", "-"]
        print(f"| {name_of(size)} | {len(subject[size])} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
