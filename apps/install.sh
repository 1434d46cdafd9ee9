#!/usr/bin/env bash
# Builds netcl's archive and unpacks it as an installation.
#
#   apps/install.sh --prefix DIR [--archive FILE]
#
# Afterwards DIR holds bin/netcl-app, plugins/, include/netcl/ and share/netcl/. Files of an earlier
# installation are replaced, netcl's own plugins as whole directories; anything else in DIR stays,
# such as further plugins in DIR/plugins. --archive unpacks FILE, a netcl-dist.tar.gz, and builds
# nothing. Needs no root, unless DIR does.
set -euo pipefail

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
refuse() {
  echo "install: $1" >&2
  exit 2
}

prefix=
archive=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --prefix | --archive)
      [ $# -ge 2 ] || refuse "$1 needs a value; see --help"
      if [ "$1" = --prefix ]; then prefix=$2; else archive=$2; fi
      shift 2
      ;;
    --prefix=*)
      prefix=${1#*=}
      shift
      ;;
    --archive=*)
      archive=${1#*=}
      shift
      ;;
    *) refuse "unknown argument '$1'; see --help" ;;
  esac
done
[ -n "$prefix" ] || refuse "--prefix DIR is needed, such as --prefix ~/.local; see --help"
if [ -e "$prefix" ] && [ ! -d "$prefix" ]; then refuse "$prefix exists and is no directory"; fi

if [ -z "$archive" ]; then
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  echo "install: building //:dist"
  (cd "$root" && bazel build --noshow_progress //:dist)
  archive=$root/bazel-bin/netcl-dist.tar.gz
fi
[ -r "$archive" ] || refuse "$archive cannot be read"

mkdir -p "$prefix" || refuse "$prefix cannot be made"
prefix=$(cd "$prefix" && pwd)
[ -w "$prefix" ] || refuse "$prefix is not writable by $(id -un); choose another --prefix, or use sudo"

files=$(tar -tzf "$archive")
# A plugin's directory is replaced whole: a file that a newer version lacks must not stay behind.
while IFS= read -r plugin; do
  if [ -d "$prefix/$plugin" ]; then
    echo "install: replacing $prefix/$plugin"
    rm -rf "${prefix:?}/$plugin"
  fi
done < <(grep -E '^plugins/[^/]+/$' <<<"$files" || true)
# The program is replaced by rename, so that a running one keeps its own file.
tar -xzf "$archive" -C "$prefix" --no-same-owner --unlink-first --no-overwrite-dir

echo "install: $(grep -vc '/$' <<<"$files") files below $prefix"
for part in bin/netcl-app plugins include/netcl share/netcl/examples; do
  [ -e "$prefix/$part" ] || refuse "$archive lacks $part: it is no netcl-dist.tar.gz"
  echo "install:   $prefix/$part"
done
echo "install: try '$prefix/bin/netcl-app devices'"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "install: $prefix/bin is not in PATH" ;;
esac
