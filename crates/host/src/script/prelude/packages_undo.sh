# shellcheck shell=sh disable=SC2034,SC2154
# The way back of packages.

packages_left() {
  for f in "$S"/record/package-*; do [ ! -f "$f" ] || return 0; done
  return 1
}

# What others still need stays installed, and stays in the record.
remove_packages() {
  [ -n "$packages" ] || return 0
  names= modest=
  for key in $packages; do
    load "$key" || continue
    names="$names $l_name"
    # Its configuration was there before, of a package that had been removed.
    [ "$l_was" != config-files ] || modest="$modest $l_name"
  done
  look_packages
  keep_earlier || {
    for key in $packages; do ! load "$key" || stick "cannot keep the configuration that was there before it"; done
    return
  }
  # shellcheck disable=SC2086 # names of packages have no spaces
  if ! purge $names; then
    for _ in 1 2 3 4 5; do for n in $names; do purge "$n" || :; done; done
  fi
  for key in $packages; do
    load "$key" || continue
    if has_trace "$l_name"; then
      purge_check "$l_name" >"$out" 2>&1
      stick "$l_name is still installed"
    else
      say "undone package $l_name"
      forget "$key"
    fi
  done
}

purge() {
  present=
  for p in "$@"; do ! has_trace "$p" || present="$present $p"; done
  [ -n "$present" ] || return 0
  export DEBIAN_FRONTEND=noninteractive
  removed=
  for p in $present; do case " $modest " in *" $p "*) removed="$removed $p" ;; esac; done
  # shellcheck disable=SC2086
  [ -z "$removed" ] || when_free dpkg --force-remove-reinstreq --remove $removed || return
  for p in $removed; do present=$(printf '%s' "$present " | sed "s/ $p / /"); done
  [ -n "${present# }" ] || return 0
  # shellcheck disable=SC2086
  case $manager in dpkg) when_free dpkg --force-remove-reinstreq --purge $present ;; rpm) when_free rpm -e $present ;; esac
}

purge_check() {
  case $manager in dpkg) dpkg --simulate --purge "$1" ;; rpm) rpm -e --test "$1" ;; esac
}

# A package that dpkg was cut off in has left files too.
has_trace() {
  [ "$manager" = dpkg ] || { has_package "$1"; return; }
  case $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) in
  '' | not-installed) return 1 ;;
  config-files) case " $modest " in *" $1 "*) return 1 ;; esac ;;
  esac
}
