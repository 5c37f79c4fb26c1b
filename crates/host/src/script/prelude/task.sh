# shellcheck shell=sh disable=SC2034,SC2154
# A task: look, record, change.

look_around() {
  looked=
  phase=look
  {
    next
    # The first line is the place where files wait.
    stage_device=
    [ "$st_n" != "${T:-/}" ] || { stage_device=$st_d; next; }
    ops
    looked=1
  } 3<<STAT 5<<UNITS
$(stat_all)
STAT
$(units_all)
UNITS
  [ -n "$looked" ] || fail 0 "no space for the shell's temporary files"
  looked=
  phase=hash
  { next_sum; ops; looked=1; } 3<<SUMS
$(sums)
SUMS
  [ -n "$looked" ] || fail 0 "no space for the shell's temporary files"
}

# Changes nothing, needs no lock, and tells what `apply` would do.
look() {
  exec 4>/dev/null
  mode=look
  say "hatchery 1 $run"
  if [ -f "$S/cluster" ] && IFS=' ' read -r held held_name <"$S/cluster" && [ "$held" != "$cluster" ]; then
    say "held $held $held_name"
    finish failed
  fi
  # Before everything is looked at: a run that begins later is as one that comes after us.
  busy=
  ! is_busy || busy=1
  look_around
  [ -z "$busy" ] && ! is_unsettled || say unsettled
  i=0
  while [ "$i" -lt "$count" ]; do
    if needed "$i"; then say "would $i $need"; else say "unchanged $i"; fi
    i=$((i + 1))
  done
  finish ok
}

# Whether another run, or a program that outlived it, is at work.
is_busy() {
  # Shared, so that those who look do not keep each other out.
  [ ! -e "$S/lock" ] || flock -n -s "$S/lock" true </dev/null 2>/dev/null || return 0
  child_lives
}

# Whether applying does more than its list says: it puts in order what a run that died has left, or writes down what files
# look like now.
is_unsettled() {
  [ -z "$touched" ] || return 0
  [ ! -s "$S/transaction" ] && [ ! -s "$S/reopen" ] && [ ! -f "$S/record/policy" ] && [ ! -d "$S/kept" ] || return 0
  for d in "$S"/in/* "$R"/var/lib/hatchery-scripts.??????; do [ ! -d "$d" ] || return 0; done
  return 1
}

apply() {
  mode=apply
  trap '' HUP PIPE
  T=$PWD
  [ -d f ] || mkdir f
  exec 4>/dev/null
  take_lock
  exec 4>"$S/report"
  say "hatchery 1 $run"
  catch_output
  claim new
  sweep
  look_around
  phase=want
  ops
  [ -z "$wanting" ] || finish wanting
  # Who changes nothing makes no records, and waits for no disk.
  i=0 numbers=0
  while [ "$i" -lt "$count" ]; do
    ! needed "$i" || { numbers=$((count * 2 + 2)); break; }
    i=$((i + 1))
  done
  begin_records "$numbers"
  record_began=1
  # What a run that died brought is there, whatever becomes of this one.
  made=
  phase=record
  ops
  flush_records
  i=0
  while [ "$i" -lt "$count" ]; do
    needed "$i" || say "unchanged $i"
    i=$((i + 1))
  done
  phase=change
  ops
  phase=collect
  ops
  phase=settle
  {
    next
    ops
  } 3<<STAT
$([ -z "$changed" ] || eval "stat -c '$form' $changed" 2>/dev/null)
STAT
  # By itself the kernel begins half a minute later, when whoever writes has to wait for all that has come together.
  if [ -n "$changed" ]; then
    # One command and no list: for a list some shells keep another shell, which would hold the lock and the connection.
    sync </dev/null >/dev/null 2>&1 3<&- 4>&- 5<&- 9>&- &
  fi
  finish ok
}
