# shellcheck shell=sh disable=SC2034,SC2154
# Services that packages bring: none comes up because its package is installed.

# Also for a run that died. What cannot be put back stays in the record.
allow_starts() {
  unset HATCHERY_RUNNING
  [ -f "$S/record/policy" ] || return 0
  ! load policy || restore_path policy || return 0
  forget policy
}

# units_of NAMES: what the packages of these names bring for systemd; a template is nothing that runs.
units_of() {
  per_format files "$@" 2>/dev/null </dev/null 9>&- |
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
