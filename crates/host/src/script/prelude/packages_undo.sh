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
    if per_format has_trace "$l_name"; then
      per_format purge_check "$l_name" >"$out" 2>&1
      stick "$l_name is still installed"
    else
      say "undone package $l_name"
      forget "$key"
    fi
  done
}

purge() {
  present=
  for p in "$@"; do ! per_format has_trace "$p" || present="$present $p"; done
  [ -n "$present" ] || return 0
  # shellcheck disable=SC2086 # names of packages have no spaces
  per_format purge $present
}
