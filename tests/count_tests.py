"""Counts Bazel test targets in a build event file and shows the logs of failed ones.

The last line printed is "N passed, N failed". Exit status 1 when a test failed or none ran.
A target that was configured as a test but has no good result counts as failed.
"""

import argparse
import json
import pathlib
import sys
from urllib.parse import unquote, urlparse

PASSED = {"PASSED", "FLAKY"}


def read_events(path):
    """Returns ({label: status}, {label: [log paths]}) of the test targets."""
    status, logs = {}, {}
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return status, logs
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of an interrupted run
        key = event.get("id", {})
        if "configured" in event and event["configured"].get("testSize"):
            status.setdefault(key["targetConfigured"]["label"], "DID NOT RUN")
        elif "testResult" in event:
            label = key["testResult"]["label"]
            if event["testResult"].get("status") not in PASSED:
                for output in event["testResult"].get("testActionOutput", []):
                    if output.get("name") == "test.log":
                        logs.setdefault(label, []).append(unquote(urlparse(output["uri"]).path))
        elif "testSummary" in event:
            status[key["testSummary"]["label"]] = event["testSummary"].get("overallStatus", "UNKNOWN")
    return status, logs


def tail(path, lines):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as e:
        return f"(no log: {e})"
    kept = text.splitlines()[-lines:]
    return "\n".join(line[:400] for line in kept)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events")
    parser.add_argument("--log-lines", type=int, default=150)
    args = parser.parse_args(argv)
    status, logs = read_events(args.events)
    failed = sorted(label for label, s in status.items() if s not in PASSED)
    for label in sorted(set(status) - set(failed)):
        print(f"passed  {label}")
    for label in failed:
        print(f"failed  {label}  ({status[label]})")
        for path in logs.get(label, [])[-1:]:
            print(tail(path, args.log_lines))
    print(f"{len(status) - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
