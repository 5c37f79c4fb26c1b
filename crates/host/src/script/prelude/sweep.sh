# shellcheck shell=sh disable=SC2034,SC2154
# What a run that died left behind.

# What a run that died left of its stream. One that is still receiving is not ours to remove.
sweep() {
  allow_starts
  strewn
  for d in "$S"/in/*; do
    [ -d "$d" ] && [ "$d" != "${T:-}" ] || continue
    p=
    [ ! -f "$d/pid" ] || IFS=' ' read -r p began <"$d/pid"
    started "${p:-0}"
    [ -n "$p" ] && [ -n "$tick" ] && [ "$tick" = "$began" ] && continue
    # One that was made a moment ago has not said yet whose it is.
    [ -n "$p" ] || [ -n "$(find "$d" -prune -mmin +2 2>/dev/null)" ] || continue
    rm -rf "$d"
  done
  # Without a record nobody would remove these copies.
  for d in "$S"/record/*.users; do [ ! -d "$d" ] || [ -f "${d%.users}" ] || rm -rf "$d"; done
  sweep_scripts
  reopen_ports || :
  # Before a package that comes again brings its own in their place.
  put_earlier_back || :
  account
}

# Directories of one-off scripts that were cut off. One that a process works in is in use.
sweep_scripts() {
  at_work=
  for d in "$R"/var/lib/hatchery-scripts.??????; do
    [ -d "$d" ] && place=$(cd "$d" && pwd -P) || continue
    [ -n "$at_work" ] || at_work=$(ls -l /proc/[0-9]*/cwd 2>/dev/null)
    case $at_work$nl in *" -> $place$nl"* | *" -> $place/"*) continue ;; esac
    # One that was made a moment ago has nobody in it yet.
    [ -d "$d/s" ] || [ -n "$(find "$d" -prune -mmin +2 2>/dev/null)" ] || continue
    rm -rf "$d"
  done
}
