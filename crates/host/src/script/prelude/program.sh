# shellcheck shell=sh disable=SC2034,SC2154
# Programs that are run: without our lock and our streams, and with a limit of time.

# Runs a program that may start others: these must not keep our lock and our streams. Who comes after us has to
# know of it, since it can outlive us: it says so itself, and has the lock until then.
quiet() {
  (
    [ "$mode" = look ] || { started self && printf '%s\n' "$self ${tick:--}" >"$S/child"; }
    # For the package manager alone: where it is too long to be given, everything else still works.
    [ -z "${HATCHERY_RUNNING:-}" ] || export HATCHERY_RUNNING
    umask 022 && exec "$@" 9>&-
  ) >"$out" 2>&1 </dev/null 3<&- 4>&- 5<&- &
  child=$!
  [ -n "$vigil" ] || { wait "$child"; return; }
  # In braces: of a plain command dash would keep copies of the streams and of the lock.
  { watch_over "$child" "$vigil"; } </dev/null >/dev/null 2>&1 3<&- 4>&- 5<&- 9>&- &
  watcher=$!
  # Some shells say of what was ended that it was.
  wait "$child" 2>/dev/null
  set -- $?
  # One that ended the command has still to do with what that started.
  [ -e "$out.idle" ] || { kill "$watcher"; wait "$watcher"; } 2>/dev/null
  return "$1"
}

# within SECONDS COMMAND...: where `timeout` is missing, without a limit.
within() {
  seconds=$1
  shift
  if command -v timeout >/dev/null; then
    quiet timeout -k 5 "$seconds" "$@"
    case $? in
    0) return 0 ;;
    124 | 137) echo "gave up after $seconds s" >>"$out"; return 1 ;;
    *) return 1 ;;
    esac
  fi
  quiet "$@"
}

# while_alive SECONDS COMMAND...: for what takes as long as it takes, such as a download. It is ended when neither it nor
# what it started has read or written anything for so long.
while_alive() {
  vigil=$1
  shift
  rm -f "$out.idle"
  quiet "$@"
  set -- $? "$vigil"
  vigil=
  [ -e "$out.idle" ] || return "$1"
  rm -f "$out.idle"
  echo "gave up: no sign of progress for $2 s" >>"$out"
  return 1
}

# watch_over PID SECONDS: beside the command, and without our lock, since it may outlive us for a moment.
watch_over() {
  pause=$(($2 / 10)) still=0 last=
  [ "$pause" -lt 5 ] || pause=5
  [ "$pause" -gt 0 ] || pause=1
  started "$1"
  began=$tick
  # Who ends it is done and leaves nothing behind, not for a moment. Not `nap`, which is set later than the process
  # begins; and KILL, since a process that is about to become another program may lose TERM.
  before=${!:-}
  trap '[ "${!:-}" = "$before" ] || { kill -9 "$!"; wait "$!"; }; exit 0' TERM
  while :; do
    sleep "$pause" &
    wait "$!" || exit 0
    started "$1"
    [ -n "$tick" ] && [ "$tick" = "$began" ] || exit 0
    find_tree "$1"
    transferred
    if [ "$bytes" = "$last" ]; then still=$((still + pause)); else still=0 last=$bytes; fi
    [ "$still" -ge "$2" ] || continue
    : >"$out.idle"
    # shellcheck disable=SC2086 # numbers
    kill $tree
    sleep 5
    # shellcheck disable=SC2086
    kill -9 $tree
    exit 0
  done
}

# find_tree PID: it and everything that it started, as far as that has not been left to others.
find_tree() {
  tree=" $1 " table= grown=1
  for f in /proc/[0-9]*/stat; do
    IFS= read -r line <"$f" || continue
    p=${line%% *} line=${line##*) }
    line=${line#* }
    table="$table $p:${line%% *}"
  done
  while [ -n "$grown" ]; do
    grown=
    for p in $table; do
      case $tree in *" ${p%:*} "*) continue ;; *" ${p#*:} "*) tree="$tree${p%:*} " grown=1 ;; esac
    done
  done
}

# How much the processes of a tree have read and written, whatever they read and wrote.
transferred() {
  bytes=
  for p in $tree; do
    { IFS=' ' read -r _ taken && IFS=' ' read -r _ given; } <"/proc/$p/io" || continue
    bytes="$bytes $p:$taken:$given"
  done
}

uptime_now() {
  IFS=' .' read -r now _ </proc/uptime
}
