# shellcheck shell=sh disable=SC2034,SC2154
# apt, for packages of dpkg.

apt_install() {
  apt_bring "$@" || {
    grep -q 'Unable to locate\|has no installation candidate\|404' "$out" && when_free apt-get update -q && apt_bring "$@"
  } || return
  # One that was cut off while it was unpacked counts as the newest there is.
  broken=
  for p; do deb_has "$p" || broken="$broken $p"; done
  # shellcheck disable=SC2086 # names of packages have no spaces
  [ -z "$broken" ] || apt_bring --reinstall $broken
}

# Nobody else's package is removed for ours.
apt_bring() {
  asked=$*
  bring apt-get install -y -q --no-install-recommends --no-remove -o Dpkg::Options::=--force-confold "$@"
}

apt_plan() {
  while_alive "$step_timeout" apt-get -s install -y -q --no-install-recommends --no-remove "$@"
  plan=$(printf '+ %s\n' "$@"; sed -n 's/^Inst \([^ :]*\).*/+ \1/p' "$out")
}

# dpkg's words tell it.
apt_is_locked_out() { false; }

apt_fetched() {
  printf '%s\n' "$R"/var/cache/apt/archives/*.deb
}

# It knows what its lists say.
apt_offered() {
  apt-cache policy "$@" 2>/dev/null
}
