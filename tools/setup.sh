# shellcheck shell=bash
# Sourced by ./triax, ./test and .ci/run: packages, configuration, builds. Needs $root.
# Everything it says goes to stderr; stdout belongs to the program that runs afterwards.

# Two clones of the same sources share what the compiler cache holds.
export CCACHE_BASEDIR=$root

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Names in the given groups of packages.txt.
packages_of() {
  local group
  for group in "$@"; do
    awk -v want="$group" '
      /^# group:/ { inside = ($3 == want); next }
      /^#/ || NF == 0 { next }
      inside { print $1 }' "$root/packages.txt"
  done
}

# Of the names on the command line, those that are not installed.
missing_packages() {
  local have
  have=$(dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' "$@" 2>/dev/null |
    awk '$1 == "installed" { sub(/:.*/, "", $2); print $2 }')
  # Other makers' packages of node bring npm along.
  ! command -v npm >/dev/null || have+=$'\nnpm'
  printf '%s\n' "$@" | grep -vxF -e "$have" || true
}

# apt-get as root or through sudo.
apt_get() {
  local -a as=()
  [ "$(id -u)" -eq 0 ] || as=(sudo)
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@"
}

# ensure_packages GROUP...: installs what is missing, and says so.
ensure_packages() {
  local -a wanted missing
  mapfile -t wanted < <(packages_of "$@")
  if ! command -v dpkg-query >/dev/null; then
    say "no Debian package system here: going on with what is installed (packages.txt lists it)"
    return
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ "${#missing[@]}" -gt 0 ] && [ -n "${missing[0]}" ] || return 0
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    die "missing Debian packages, and neither root nor sudo to install them. As root:
apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  local log=$root/build/log/apt.log
  mkdir -p "$root/build/log"
  # The lists may be absent or old. A source that has nothing to do with us may fail to update.
  apt_get update >"$log" 2>&1 || say "apt-get update reports errors ($log); trying to install anyway"
  if ! apt_get install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "installing packages failed; the whole output is in $log"
  fi
}

# configure DIR PRESET [cmake arguments]: runs cmake when DIR is new or was made for another place.
configure() {
  local dir=$root/build/$1 preset=$2 log=$root/build/log/$1-configure.log
  shift 2
  mkdir -p "$root/build/log"
  if [ -f "$dir/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
    say "$dir was configured for another folder: starting it anew"
    rm -rf "$dir"
  fi
  if ! (cd "$root" && cmake --preset "$preset" -B "$dir" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    say "cmake failed for preset $preset"
    return 1
  fi
}

# build DIR [TARGET...]: ninja with a progress line on a terminal, quiet otherwise; what a compiler
# says about a failure is shown either way.
build() {
  local dir=$root/build/$1 log=$root/build/log/$1-build.log
  shift
  mkdir -p "$root/build/log"
  if [ -t 2 ]; then
    NINJA_STATUS='[%f/%t] ' ninja -C "$dir" "$@" >&2
  elif ! ninja --quiet -C "$dir" "$@" >"$log" 2>&1; then
    tail -n 200 "$log" >&2
    say "the build failed; the whole output is in $log"
    return 1
  fi
}
