# shellcheck shell=sh disable=SC2034,SC2154
# One run at a time on a machine, and one cluster.

# started PID: when it began, in ticks since boot; empty when there is no such process. `self` is who asks.
started() {
  tick=
  [ -r "/proc/$1/stat" ] || return 0
  IFS= read -r line 2>/dev/null <"/proc/$1/stat" || return 0
  self=${line%% *} line=${line##*) }
  set -f
  # shellcheck disable=SC2086 # the fields of the line
  set -- $line
  set +f
  tick=${20:-} parent=${2:-} group=${3:-}
  # One that ended and that nobody has asked about yet is none.
  case $1 in Z | X) tick= ;; esac
}

# The session of sshd that carries us; without it nobody waits for our answer any more.
find_carrier() {
  carrier=$$
  while [ "${carrier:-0}" -gt 1 ]; do
    started "$carrier"
    IFS= read -r comm 2>/dev/null <"/proc/$carrier/comm" || comm=
    case $comm in sshd*) break ;; esac
    carrier=${parent:-0}
  done
  started "${carrier:-0}"
  carrier="$carrier ${tick:--}"
}

# lock_within SECONDS: busybox's flock has no limit of its own. The pauses grow, since most locks are free soon.
lock_within() {
  ! flock -n 9 || return 0
  for pause in 0.1 0.2 0.3 0.4; do
    [ "$1" -gt 0 ] || return 1
    sleep "$pause" 2>/dev/null || sleep 1
    ! flock -n 9 || return 0
  done
  waited=1
  while [ "$waited" -lt "$1" ]; do
    waited=$((waited + 1))
    sleep 1
    ! flock -n 9 || return 0
  done
  return 1
}

# The kernel frees the lock when the last process of a run is gone, however it went.
take_lock() {
  command -v flock >/dev/null || { say "needs flock"; cd / && rm -rf "${T:-/nowhere}" && rmdir "$S/in" "$S" 2>/dev/null; finish failed; }
  while :; do
    exec 9>>"$S/lock"
    # Who only looks has it for a moment.
    if ! lock_within 1; then
      IFS=' ' read -r h_run h_boot h_pid h_tick h_group h_carrier h_ctick <"$S/holder" || h_run=
      say "waiting ${h_run:-?}"
      lock_within "$lock_timeout" || fence
    fi
    # Undo removes the lock with everything else: then it is not this file that counts.
    [ "$S/lock" -ef /proc/self/fd/9 ] && break
    [ -d "$S" ] || mkdir -p "$S" || { say "stopped cannot make $S"; finish failed; }
  done
  await_child
  IFS= read -r boot </proc/sys/kernel/random/boot_id || boot=-
  find_carrier
  started $$
  printf '%s\n' "$run $boot $$ ${tick:--} ${group:-0} $carrier" >"$S/holder"
}

# Whether the last program of a run that died is still at work.
child_lives() {
  [ -f "$S/child" ] && IFS=' ' read -r c_pid c_tick <"$S/child" || return 1
  started "${c_pid:-0}"
  [ -n "$tick" ] && [ "$tick" = "$c_tick" ]
}

# It is waited for, then ended.
await_child() {
  c_left=$lock_timeout
  while child_lives; do
    [ "$c_left" -gt 0 ] || { kill -9 "-$c_pid" "$c_pid" 2>/dev/null; say "fenced a program of an earlier run"; }
    [ "$c_left" -gt -20 ] || break
    sleep 1
    c_left=$((c_left - 1))
  done
}

# A run whose connection is gone and which does not end is ended; one that somebody still
# listens to is left alone, and this run is refused.
fence() {
  IFS= read -r boot </proc/sys/kernel/random/boot_id || boot=-
  IFS=' ' read -r h_run h_boot h_pid h_tick h_group h_carrier h_ctick <"$S/holder" || h_run=
  started "${h_carrier:-0}"
  if [ -z "$h_run" ] || [ "$h_boot" != "$boot" ] || { [ "${h_carrier:-0}" -gt 1 ] && [ "$tick" = "$h_ctick" ]; }; then
    say "busy ${h_run:-?}"
    finish failed
  fi
  started "${h_pid:-0}"
  [ "$tick" != "$h_tick" ] || kill -9 "-$h_group" "$h_pid" 2>/dev/null
  ! { [ -f "$S/child" ] && IFS=' ' read -r c_pid c_tick <"$S/child"; } || {
    started "${c_pid:-0}"
    [ "$tick" != "$c_tick" ] || kill -9 "-$c_pid" "$c_pid" 2>/dev/null
  }
  say "fenced $h_run"
  lock_within 20 || { say "busy $h_run"; finish failed; }
}

# One machine never serves two clusters.
claim() {
  if [ -f "$S/cluster" ] && IFS=' ' read -r held held_name <"$S/cluster" && [ -n "$held" ]; then
    [ "$held" = "$cluster" ] || { say "held $held $held_name"; finish failed; }
  elif [ "$1" = new ]; then
    set_durably cluster "$cluster $cluster_name" || { say "stopped cannot write to $S"; finish failed; }
  fi
}
