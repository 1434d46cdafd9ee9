# shellcheck shell=bash
# A Debian 12 chroot with the minimal system, for scripts that prove what a bare machine can do.
#
#   readonly NAME="fresh machine"           what messages begin with
#   . tests/chroot.sh
#   make_chroot PACKAGE,PACKAGE             packages beside the minimal system; it is $root, below
#                                           TMPDIR, and goes at exit
#   inside "cd /srv && ls"                  a command line in it, with none of this machine's environment
#
# It gets this machine's Debian sources, proxy settings and certificates. Needs root and debootstrap.
readonly SUITE=bookworm

refuse() {
  # shellcheck disable=SC2153
  echo "$NAME: $1" >&2
  exit 2
}
step() { echo "$NAME: == $1"; }
downloaded() { du -cm "$root"/var/cache/apt/archives/*.deb 2>/dev/null | awk 'END {print $1 + 0}'; }
took() { echo "$NAME: $1 took $((SECONDS - $2)) s, packages so far $(downloaded) MB"; }

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
    echo "$NAME: $root stays, something is still mounted there" >&2
  else
    rm -rf --one-file-system "$work"
  fi
  exit "$status"
}
make_chroot() { # PACKAGES
  [ "$(id -u)" -eq 0 ] || refuse "a chroot needs root"
  command -v debootstrap >/dev/null || refuse "debootstrap is missing; apt-get install debootstrap"
  work=$(mktemp -d)
  readonly work root="$work/root"
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM

  local sources mirror
  # This machine's sources of the suite, whatever format its files have.
  # shellcheck disable=SC2016
  sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sort -u | awk -v suite="$SUITE" '$2 ~ "^" suite "(-updates|-security)?$" {print "deb " $0}')
  mirror=$(awk -v suite="$SUITE" '$3 == suite && $4 == "main" {print $2; exit}' <<<"$sources")
  [ -n "$mirror" ] || refuse "apt on this machine has no source of $SUITE main"

  debootstrap --variant=minbase --include="$1" "$SUITE" "$root" "$mirror" \
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
}

# Nothing of this machine's environment but its way to the network.
environment=(HOME=/root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  if [ -n "${!name:-}" ]; then environment+=("$name=${!name}"); fi
done
inside() { chroot "$root" /usr/bin/env -i "${environment[@]}" bash -c "$1"; }
