#!/usr/bin/env bash
# Proves the README's two commands on a machine that has nothing: a Debian 12 chroot made for it.
#
#   tests/fresh_machine.sh [quickstart|run_all]...
#
# Needs root and debootstrap; takes 10 to 30 minutes, 6 GiB of disk below TMPDIR, and leaves nothing
# behind. The chroot holds the minimal system, git and ca-certificates; it gets a clone of this
# repository's HEAD (what is not committed is not tested), this machine's Debian sources, proxy
# settings and certificates. Both commands run unless some are named. Prints the time and the
# downloads of each step. Exit status: 0 only if every command succeeded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly NAME="fresh machine"
. tests/chroot.sh
commands=("$@")
[ ${#commands[@]} -gt 0 ] || commands=(quickstart run_all)
for command in "${commands[@]}"; do
  case $command in
    -h | --help)
      sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    quickstart | run_all) ;;
    *) refuse "unknown command '$command'; there are quickstart and run_all" ;;
  esac
done
started=$SECONDS

step "debootstrap"
since=$SECONDS
make_chroot git,ca-certificates
git clone -q --no-hardlinks "file://$PWD" "$root/srv/netcl"
took "a bare system" "$since"

failed=0
for command in "${commands[@]}"; do
  case $command in
    quickstart) line=apps/quickstart.sh ;;
    run_all) line=tests/run_all.sh ;;
  esac
  step "$line"
  since=$SECONDS
  if ! inside "cd /srv/netcl && $line"; then
    echo "fresh machine: $line FAILED"
    failed=$((failed + 1))
  fi
  took "$line" "$since"
done

echo "fresh machine: $((SECONDS - started)) s, $(downloaded) MB of packages," \
  "$(du -sm --one-file-system "$root" | cut -f1) MB on disk at the end"
echo "$((${#commands[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
