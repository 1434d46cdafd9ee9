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

readonly SUITE=bookworm
refuse() {
  echo "fresh machine: $1" >&2
  exit 2
}

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
[ "$(id -u)" -eq 0 ] || refuse "a chroot needs root"
command -v debootstrap >/dev/null || refuse "debootstrap is missing; apt-get install debootstrap"

work=$(mktemp -d)
readonly work root="$work/root"
# Only unmounted folders may be removed: what is mounted below belongs to this machine.
finish() {
  status=$?
  trap - EXIT
  local pid place
  # Bazel's server outlives its client; its root directory tells the chroot's processes apart.
  for pid in /proc/[0-9]*; do
    [ "$(readlink "$pid/root" 2>/dev/null)" != "$root" ] || kill -9 "${pid#/proc/}" 2>/dev/null || true
  done
  for place in dev/pts dev/shm sys proc; do
    if mountpoint -q "$root/$place"; then umount "$root/$place" || umount -l "$root/$place"; fi
  done
  if grep -q " $root/" /proc/mounts; then
    echo "fresh machine: $root stays, something is still mounted there" >&2
  else
    rm -rf --one-file-system "$work"
  fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

started=$SECONDS
downloaded() { du -cm "$root"/var/cache/apt/archives/*.deb 2>/dev/null | awk 'END {print $1 + 0}'; }
step() { echo "fresh machine: == $1"; }
took() { echo "fresh machine: $1 took $((SECONDS - $2)) s, packages so far $(downloaded) MB"; }

# This machine's sources of the suite, whatever format its files have.
sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  sort -u | awk -v suite="$SUITE" '$2 ~ "^" suite "(-updates|-security)?$" {print "deb " $0}')
mirror=$(awk -v suite="$SUITE" '$3 == suite && $4 == "main" {print $2; exit}' <<<"$sources")
[ -n "$mirror" ] || refuse "apt on this machine has no source of $SUITE main"

step "debootstrap"
since=$SECONDS
debootstrap --variant=minbase --include=git,ca-certificates "$SUITE" "$root" "$mirror" \
  >"$work/debootstrap.log" 2>&1 || {
  tail -n 30 "$work/debootstrap.log" >&2
  refuse "debootstrap failed"
}
echo "$sources" >"$root/etc/apt/sources.list"
for file in /etc/apt/apt.conf /etc/apt/auth.conf /etc/apt/auth.conf.d/* /etc/resolv.conf /etc/hosts \
  /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*; do
  if [ -f "$file" ]; then
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  fi
done
# Of apt's settings only those that say how to reach its sources.
grep -lsriE 'proxy|Acquire::https?|Acquire::Retries|CaInfo' /etc/apt/apt.conf.d | while read -r file; do
  cp -L "$file" "$root$file"
done || true
# Packages are kept, so that they can be counted.
echo 'APT::Keep-Downloaded-Packages "true";' >"$root/etc/apt/apt.conf.d/99keep"
rm -f "$root/etc/apt/apt.conf.d/docker-clean"
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/sys"
# OpenCL drivers read the processors from /sys; PoCL gives up without it.
mount --bind /sys "$root/sys"
mount -o remount,ro,bind "$root/sys"
mount --bind /dev/shm "$root/dev/shm"
mount --bind /dev/pts "$root/dev/pts"
git clone -q --no-hardlinks "file://$PWD" "$root/srv/netcl"
took "a bare system" "$since"

# Nothing of this machine's environment but its way to the network.
environment=(HOME=/root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  if [ -n "${!name:-}" ]; then environment+=("$name=${!name}"); fi
done
inside() { chroot "$root" /usr/bin/env -i "${environment[@]}" bash -c "cd /srv/netcl && $1"; }

failed=0
for command in "${commands[@]}"; do
  case $command in
    quickstart) line=apps/quickstart.sh ;;
    run_all) line=tests/run_all.sh ;;
  esac
  step "$line"
  since=$SECONDS
  if ! inside "$line"; then
    echo "fresh machine: $line FAILED"
    failed=$((failed + 1))
  fi
  took "$line" "$since"
done

echo "fresh machine: $((SECONDS - started)) s, $(downloaded) MB of packages," \
  "$(du -sm --one-file-system "$root" | cut -f1) MB on disk at the end"
echo "$((${#commands[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
