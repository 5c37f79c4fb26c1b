# shellcheck shell=sh disable=SC2034,SC2154
# Services that packages bring: none comes up because its package is installed.

# No service comes up because its package is installed: it would run as nobody asked for. Debian's packages ask this
# file before they start anything. It forbids nothing to those whom others install, nor to services that ran before.
forbid_starts() {
  [ "$manager" = dpkg ] && [ -d "$R/usr/sbin" ] || return 0
  keep "$1" policy file "$R/usr/sbin/policy-rc.d" /usr/sbin/policy-rc.d
  flush_records
  # shellcheck disable=SC2016 # the words of another script
  printf '%s\n' '#!/bin/sh' ': Placed by Hatchery while it installs packages, and taken away afterwards.' "before='$S/record/policy.orig'" \
    '[ ! -x "$before" ] || "$before" "$@" || exit' '[ -n "${HATCHERY_RUNNING:-}" ] || exit 0' '[ "$1" != --quiet ] || shift' \
    'case $2 in *stop*) exit 0 ;; esac' 'case $HATCHERY_RUNNING in *" $1 "* | *" $1.service "*) exit 0 ;; esac' 'exit 101' >"$T/policy" &&
    chmod 755 "$T/policy" || fail "$1" "cannot write to $T"
  put "$1" "$T/policy" "$R/usr/sbin/policy-rc.d" policy '?'
  # Only what packages start: every container is a scope and some mounts.
  HATCHERY_RUNNING=$(systemctl list-units --plain --no-legend --no-pager --type=service,socket,timer,path --state=active,activating,reloading \
    2>/dev/null </dev/null 9>&- | while IFS=' ' read -r unit _; do printf ' %s' "$unit"; done)
  HATCHERY_RUNNING="$HATCHERY_RUNNING "
}

# Also for a run that died. What cannot be put back stays in the record.
allow_starts() {
  unset HATCHERY_RUNNING
  [ -f "$S/record/policy" ] || return 0
  ! load policy || restore_path policy || return 0
  forget policy
}

# units_of NAMES: what the packages of these names bring for systemd; a template is nothing that runs.
units_of() {
  case $manager in dpkg) dpkg -L "$@" ;; rpm) rpm -ql "$@" ;; esac 2>/dev/null </dev/null 9>&- |
    sed -n 's|^.*/lib/systemd/system/\([^/]*\)$|\1|p' | grep -E '\.(service|socket|timer|path)$' | grep -v '@\.' | sort -u
}

# is_packaged UNIT: did a package of ours bring it? Then it was not there before, whatever its package did with it since.
is_packaged() {
  if [ -z "${package_units+x}" ]; then
    names=
    for f in "$S"/record/package-*; do
      case $f in *@*) continue ;; esac
      [ -f "$f" ] && load "${f##*/}" || continue
      names="$names $l_name"
    done
    find_manager
    # shellcheck disable=SC2086 # names of packages have no spaces
    package_units=$nl$([ -z "$names" ] || units_of $names)$nl
  fi
  # One in this place is stronger than a package's, and somebody else's.
  case $package_units in *"$nl$1$nl"*) [ ! -f "$R/etc/systemd/system/$1" ] || [ -h "$R/etc/systemd/system/$1" ] ;; *) false ;; esac
}

# What packages brought ends while its data is still there, also what only the packages themselves started.
gather_packaged_units() {
  names= packaged_units=
  for key in $(printf '%s\n' "$chosen" | sed -n 's/^[0-9]* package //p'); do ! load "$key" || names="$names $l_name"; done
  [ -n "$names" ] || return 0
  find_manager
  # shellcheck disable=SC2086 # names of packages have no spaces
  packaged_units=$nl$(units_of $names)$nl
  for name in $packaged_units; do
    # One in this place is not the package's. If it is ours, it has a record.
    [ ! -f "$R/etc/systemd/system/$name" ] || [ -h "$R/etc/systemd/system/$name" ] || continue
    stopping="$stopping $name" disabling="$disabling $name"
  done
}
