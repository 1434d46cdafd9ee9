"""Writes a .tar.gz whose bytes depend on nothing but its files' content.

usage: pack.py OUT PATH=SOURCE...

PATH is the file's place in the archive, SOURCE the file to put there. Entries are sorted; owner,
times and the compression's header are fixed; shared objects and files below bin/ are executable.
The directories above the files are entries too, so that they get readable modes when unpacked.
"""

import gzip
import io
import os
import sys
import tarfile


def entry(path, kind, mode, size=0):
    info = tarfile.TarInfo(path)
    info.type = kind
    info.mode = mode
    info.size = size
    info.mtime = 0
    info.uname = info.gname = "root"
    return info


def parents(path):
    while os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def write(out, files):
    """Writes the files, a dict of path in the archive -> source, to `out`."""
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, tarfile.open(
            fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {folder for path in files for folder in parents(path)}
        for path in sorted(folders | set(files)):
            if path in folders:
                archive.addfile(entry(path, tarfile.DIRTYPE, 0o755))
                continue
            with open(files[path], "rb") as stream:
                content = stream.read()
            program = path.startswith("bin/") or path.endswith(".so")
            info = entry(path, tarfile.REGTYPE, 0o755 if program else 0o644, len(content))
            archive.addfile(info, io.BytesIO(content))


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    files = {}
    for argument in arguments[2:]:
        path, _, source = argument.partition("=")
        if path in files:
            sys.exit("pack.py: two files for %s: %s and %s" % (path, files[path], source))
        files[path] = source
    write(arguments[1], files)


if __name__ == "__main__":
    main(sys.argv)
