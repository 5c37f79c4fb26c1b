# shellcheck shell=sh disable=SC2034,SC2154
# What Hatchery knows how to do on a machine, in POSIX sh: dash, bash and busybox ash run it.
#
# The program writes this file, then a few variables, then a list of operations as a function
# `ops`, then one call: `apply`, `look` or `undo`. Every value in the list is one quoted word. The list
# is gone through several times, each time with another $phase:
#   look    what is there? sets need_I to the reason for a change, or to nothing
#   hash    only files whose recorded size, times and inode no longer fit
#   record  the original of everything that is going to change, written down before the first deed
#   deed    the changes
#   want    which contents have to be sent first?
#   collect, settle  what files look like afterwards, so that the next look is cheap
# An operation that needs nothing is done with after `look`.
#
# The record of a resource KEY in $S/record:
#   KEY          four lines: "kind sequence was", name, extra, "end" (a record without "end" is void)
#   KEY.orig     what was there first: the same inode where possible, otherwise a copy
#   KEY.is       what we put there: hash, size, times, inode
#   KEY.text     what could be read at /etc/hosts when that was a link
#   KEY.pending  a unit that has to be restarted because one of its files changes
#   KEY@OWNER    who needs the resource
# Records are complete and on disk before the first deed, so that a run may die anywhere.

set -u
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
TZ=UTC0
export LC_ALL PATH TZ
nl='
'
mode=look
S=$R/var/lib/hatchery
# The time of the last change of any kind, with fractions of a second; no program can set it back.
form='%d %a %u %g %s %z %i %f %n'
out=/dev/null
reload= hosts_own= transaction= transacted= brought= forgotten=
rehash= changed= news= wanting= made= tried= purging= vigil= step=0 phase= packaged= seq=0

# ---- speaking -------------------------------------------------------------------------------

# To the connection, which may be gone, and to the report, which a later connection reads.
say() {
  { printf '%s\n' "$*"; printf '%s\n' "$*" >&4; } 2>/dev/null
}

# say_text TEXT WORDS: a line that ends with a length, then so many bytes: the last output and TEXT.
say_text() {
  text=$(tail -c 4000 "$out" 2>/dev/null | tr -d '\000')
  [ -z "$1" ] || text=${text:+$text$nl}$1
  shift
  say "$* ${#text}"
  say "$text"
}

# fail I [TEXT]: the operation failed, and nothing after it is begun.
fail() {
  say_text "${2:-}" failed "$1"
  # What was only going to be done is not ours: somebody else may make it before we come back.
  case $phase in
  record) for m in $made; do forget "${m#*:}"; done ;;
  deed)
    # Where it fails the package manager may not have been asked yet.
    allow_starts
    for m in $made; do
      case " $tried " in
      # The package manager was asked for it: the transaction tells whether it came.
      *" ${m#*:} "*) case " $brought " in *" ${m#*:} "*) continue ;; esac ;;
      *) [ "${m%%:*}" -gt "$1" ] || continue ;;
      esac
      forget "${m#*:}"
    done
    ;;
  esac
  finish failed
}

finish() {
  say "end $1"
  case ${T:-} in "$S"/in/*) cd / && rm -rf "$T" ;; esac
  [ "$out" = /dev/null ] || rm -f "$out" "$out.idle" "$out.note"
  [ "$1" = ok ] && exit 0
  exit 1
}

# What programs print is kept in memory where possible: it has to be told also when the disk is full.
catch_output() {
  out=$S/out
  [ -n "$R" ] || [ ! -w /run ] || out=/run/hatchery.out
  : >"$out"
}

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

# ---- one run at a time ------------------------------------------------------------------------

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

# The kernel frees the lock when the last process of a run is gone, however it went.
take_lock() {
  command -v flock >/dev/null || { say "needs flock"; cd / && rm -rf "${T:-/nowhere}" && rmdir "$S/in" "$S" 2>/dev/null; finish failed; }
  while :; do
    exec 9>>"$S/lock"
    if ! flock -n 9; then
      IFS=' ' read -r h_run h_boot h_pid h_tick h_group h_carrier h_ctick <"$S/holder" || h_run=
      say "waiting ${h_run:-?}"
      flock -w "$patience" 9 || fence
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

# The last program of a run that died may still be at work: it is waited for, then ended.
await_child() {
  [ -f "$S/child" ] && IFS=' ' read -r c_pid c_tick <"$S/child" || return 0
  c_left=$patience
  while started "${c_pid:-0}" && [ -n "$tick" ] && [ "$tick" = "$c_tick" ]; do
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
  flock -w 20 9 || { say "busy $h_run"; finish failed; }
}

# One machine never serves two clusters.
claim() {
  if [ -f "$S/cluster" ] && IFS=' ' read -r held held_name <"$S/cluster" && [ -n "$held" ]; then
    [ "$held" = "$cluster" ] || { say "held $held $held_name"; finish failed; }
  elif [ "$1" = new ]; then
    set_durably cluster "$cluster $cluster_name" || { say "stopped cannot write to $S"; finish failed; }
  fi
}

# set_durably NAME LINE: a file of $S that is the old or the new one after a power cut, and never empty.
set_durably() {
  printf '%s\n' "$2" >"$S/$1.new" 2>"$out" && flush "$S/$1.new" && mv -f "$S/$1.new" "$S/$1" 2>"$out" && flush "$S"
}

# Where `sync` takes no names it writes everything.
flush() {
  sync "$@" 2>/dev/null || sync
}

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

# ---- the record ---------------------------------------------------------------------------

# load KEY: false when there is no complete record, or when its original was already put back.
load() {
  l_kind= l_mark=
  [ -f "$S/record/$1" ] || return 1
  { IFS=' ' read -r l_kind l_seq l_was; IFS= read -r l_name; IFS= read -r l_extra; IFS= read -r l_mark; } <"$S/record/$1"
  [ "$l_mark" = end ] || return 1
  case $l_was in file | link) [ -f "$S/record/$1.orig" ] || [ -h "$S/record/$1.orig" ] ;; esac
}

own() {
  : >"$S/record/$1@$owner"
}

# note KEY KIND WAS NAME EXTRA
note() {
  seq=$((seq + 1))
  own "$1"
  printf '%s\n' "$2 $seq $3" "$4" "$5" end >"$S/record/$1"
  # The latest first: who forgets them may die in between, and what others stand on has to go last.
  news="$news $1" made="$step:$1 $made"
}

# amend I KEY NAME EXTRA: another name or extra for a record that is there.
amend() {
  load "$2" && printf '%s\n' "$l_kind $l_seq $l_was" "$3" "$4" end >"$S/amended" && flush "$S/amended" && mv -f "$S/amended" "$S/record/$2" || fail "$1" "cannot write to $S"
  news="$news $2"
}

# keep I KEY KIND PATH NAME: notes what is at PATH, unless an earlier original is known.
keep() {
  own "$2"
  ! load "$2" || return 0
  set -- "$1" "$2" "$3" "$4" "$5" "$S/record/$2"
  [ ! -e "$6" ] && [ ! -e "$6.orig" ] && [ ! -h "$6.orig" ] || rm -f "$6" "$6.orig" "$6.is"
  if [ -h "$4" ]; then
    was=link
  elif [ -f "$4" ]; then
    was=file
  elif [ -e "$4" ]; then
    fail "$1" "$4 is there and is neither a file nor a link"
  else
    note "$2" "$3" absent "$5" -
    return
  fi
  # The very inode, so that bytes, owner, mode, times and attributes come back as they were.
  how=linked from=
  ! came_with_package "$4" "$5" || from=-packaged
  if ! ln "$4" "$6.orig" 2>/dev/null; then
    how=copied
    rm -f "$6.orig"
    cp -a "$4" "$6.orig" 2>"$out" || fail "$1" "cannot keep a copy of $4"
    news="$news $2.orig"
  fi
  eval "looks=\${looks_$1:-}"
  note "$2" "$3" "$was" "$5" "$how$from ${looks:-$(stat -c '%a %u %g' "$4")}"
}

# came_with_package PATH NAME: is it the configuration that a package of ours brought, and as that brought it? One that
# was there before the package is somebody's own, also when it says the same.
came_with_package() {
  case $2 in /etc/*) packages_left || return ;; *) return 1 ;; esac
  [ -f "$1" ] && [ ! -h "$1" ] || return
  ! grep -qxF -e "${2#/}" "$S/earlier" 2>/dev/null || return
  find_manager
  case $manager in
  dpkg)
    p=$(dpkg-query -S "$2" 2>/dev/null) || return
    p=${p%%[:,]*} sum=$(md5sum <"$1")
    sum=${sum%% *}
    case $nl$(dpkg-query -W -f '${Conffiles}\n' "$p" 2>/dev/null)$nl$(dpkg-query --control-show "$p" md5sums 2>/dev/null)$nl in
    *"$nl $2 $sum$nl"* | *"$nl $2 $sum "* | *"$nl$sum  ${2#/}$nl"*) ;;
    *) return 1 ;;
    esac
    ;;
  rpm)
    p=$(rpm -qf --qf '%{NAME}\n' "$2" 2>/dev/null) || return
    p=${p%%"$nl"*}
    # A file that the package names but does not contain has no sum.
    case $nl$(rpm -q --qf '[%{FILEDIGESTS} %{FILENAMES}\n]' "$p" 2>/dev/null)$nl in *"$nl $2$nl"*) return 1 ;; esac
    case $(rpm -V --nodeps --noscripts "$p" 2>/dev/null)$nl in *" $2$nl"*) return 1 ;; esac
    ;;
  *) return 1 ;;
  esac
  [ -f "$S/record/package-$(printf %s "$p" | tr .+ __)" ]
}

# begin_records COUNT: numbers for so many new records, higher than all before.
begin_records() {
  [ -d "$S/record" ] || mkdir "$S/record" 2>"$out" || fail 0 "cannot make $S/record"
  [ ! -f "$S/seq" ] || IFS= read -r seq <"$S/seq" || :
  # A power cut can have emptied it, where an older release wrote it.
  case $seq in '' | *[!0-9]*) highest_number ;; esac
  [ "$1" = 0 ] || set_durably seq "$((seq + $1))" || fail 0 "cannot write to $S"
}

highest_number() {
  seq=0
  for f in "$S"/record/*; do
    [ -f "$f" ] && load "${f##*/}" && [ "$l_seq" -gt "$seq" ] || continue
    seq=$l_seq
  done 2>/dev/null
}

# Deeds begin only when the records are on disk.
flush_records() {
  [ -n "$news" ] || return 0
  # shellcheck disable=SC2086 # keys are hexadecimal words
  (cd "$S/record" && sync $news . 2>/dev/null) || sync
  news=
}

# A file brings the label of where it was made; SELinux wants that of its place.
relabel() {
  [ ! -e /sys/fs/selinux/enforce ] || [ -n "$R" ] || ! command -v restorecon >/dev/null || restorecon "$1" 2>/dev/null || :
}

# put I NEW PATH KEY DEVICE: one rename where both lie on one file system, otherwise by way of a neighbour.
put() {
  [ -h "$3" ] || [ ! -d "$3" ] || { rm -f "$2"; fail "$1" "$3 is a directory"; }
  # Into a directory that a link names is not where it belongs.
  [ ! -h "$3" ] || [ ! -d "$3" ] || rm -f "$3"
  if [ "$5" = "$stage_device" ]; then
    mv -f "$2" "$3" 2>"$out" && relabel "$3" && return
  else
    mv -f "$2" "${3%/*}/.hatchery-$4" 2>"$out" && mv -f "${3%/*}/.hatchery-$4" "$3" 2>"$out" && relabel "$3" && return
  fi
  # A file that is itself a mount point can only be written in place.
  new=$2
  [ -e "$new" ] || new=${3%/*}/.hatchery-$4
  if [ -f "$3" ] && [ -f "$new" ] && mounted "$3"; then
    cat "$new" >"$3" 2>"$out" && chmod "$(stat -c %a "$new")" "$3" && rm -f "$new" && return
  fi
  rm -f "$2" "${3%/*}/.hatchery-$4"
  fail "$1" "cannot put $3 in place"
}

# mounted PATH: is it a mount point?   mounted_below PATH: is anything below it?
mounted() {
  while IFS=' ' read -r _ m_at _; do [ "$m_at" != "$1" ] || return 0; done </proc/self/mounts
  return 1
}
mounted_below() {
  while IFS=' ' read -r _ m_at _; do
    case $m_at in "$1"/*) printf '%s\n' "$m_at is mounted" >>"$out"; return 0 ;; esac
  done </proc/self/mounts
  return 1
}

# ---- operations -----------------------------------------------------------------------------

# The next line of `stat`, which names what exists in the order of the operations.
next() {
  IFS=' ' read -r st_d st_a st_u st_g st_s st_day st_time st_zone st_i st_f st_n <&3 || st_n=
}

needs() {
  eval "need_$1=\$2"
}

# ids OWNER GROUP: as numbers, since names can have spaces. One that does not exist yet fits nothing.
ids() {
  w_uid=0 w_gid=0
  [ "$1" = root ] || w_uid=$(id -u "$1" 2>/dev/null) || w_uid=none
  [ "$2" = root ] || {
    w_gid=none
    while IFS=: read -r g_name _ g_id _; do [ "$g_name" != "$2" ] || w_gid=$g_id; done <"$R/etc/group"
  } 2>/dev/null
}

# unless_needed I: for the phases after `look`.
needed() {
  step=$1
  eval "need=\${need_$1}"
  [ -n "$need" ]
}

# What is going to be noted as absent must be: undo would remove it.
really_absent() {
  [ ! -e "$2" ] && [ ! -h "$2" ] || fail "$1" "$2 was not there a moment ago"
}

begin_deed() {
  say "start $1"
}

done_deed() {
  eval "did_$1=1"
  say "changed $1"
}

# parent I KEY PATH UP: a directory that another operation needs; UP is its own parent's number.
parent() {
  case $phase in
  look)
    need=
    if [ "$st_n" = "$R$3" ]; then
      case $st_f in
      4???) eval "dev_$1=\$st_d" ;;
      a???) [ -d "$R$3" ] || need=dangling; eval "dev_$1=?" ;;
      *) need="not-a-directory" ;;
      esac
      next
    else
      need=absent
      eval "dev_$1=\${dev_$4:-?}"
    fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      [ "$need" = absent ] || fail "$1" "$R$3 is not a directory"
      own "$2"
      really_absent "$1" "$R$3"
      load "$2" || note "$2" directory absent "$3" keep
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    [ -d "$R$3" ] || mkdir -m 755 "$R$3" 2>"$out" || fail "$1" "cannot make $R$3"
    done_deed "$1"
    ;;
  esac
}

# directory I KEY PATH UP MODE OWNER GROUP CONTENT: CONTENT is `ours` or `keep`.
directory() {
  case $phase in
  look)
    need=
    if [ "$st_n" != "$R$3" ]; then
      need=absent
      eval "dev_$1=\${dev_$4:-?}"
    else
      case $st_f in
      4???) ids "$6" "$7"; [ "$st_a $st_u $st_g" = "$5 $w_uid $w_gid" ] || need="mode $st_a $st_u $st_g" ;;
      *) need=not-a-directory ;;
      esac
      eval "dev_$1=\$st_d"
      next
    fi
    # Contents are ours only where that was written down before anything of them was made.
    if [ -z "$need" ] && [ "$8" = ours ]; then
      if ! load "$2"; then
        need=unrecorded
      elif [ "$l_was $l_extra" = 'absent keep' ]; then
        # Made by us for something else, when nobody asked for what is in it.
        need=ours
      fi
    fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      case $need in
      not-a-directory) fail "$1" "$R$3 is not a directory" ;;
      absent)
        really_absent "$1" "$R$3"
        load "$2" && [ "$l_extra" = "$8" ] || note "$2" directory absent "$3" "$8"
        ;;
      *)
        if load "$2"; then
          [ "$8 $l_was $l_extra" != 'ours absent keep' ] || note "$2" directory absent "$3" ours
        else
          if [ "$8" = ours ]; then
            list_entries "$R$3" >"$S/record/$2.list" || fail "$1" "cannot list $R$3"
            news="$news $2.list"
          fi
          note "$2" directory there "$3" "$8 $(stat -c '%a %u %g' "$R$3")"
        fi
        ;;
      esac
      own "$2"
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    [ -d "$R$3" ] || mkdir "$R$3" 2>"$out" || fail "$1" "cannot make $R$3"
    chown "$6:$7" "$R$3" 2>"$out" && chmod "00$5" "$R$3" 2>"$out" || fail "$1" "cannot set owner and mode of $R$3"
    done_deed "$1"
    ;;
  esac
}

# file I KEY PATH UP MODE OWNER GROUP SIZE HASH
file() {
  case $phase in
  look)
    need=
    if [ "$st_n" != "$R$3" ]; then
      need=absent
    else
      case $st_f in
      8???)
        if [ "$st_s" != "$8" ]; then
          need=content
        else
          is=
          [ -n "$verify" ] || [ ! -f "$S/record/$2.is" ] || IFS= read -r is <"$S/record/$2.is"
          if [ "${is#* }" = "$st_s $st_day $st_time $st_zone $st_i" ]; then
            [ "${is%% *}" = "$9" ] || need=content
          else
            need=hash
            eval "path_$1=\$R\$3"
            rehash="$rehash \"\$path_$1\""
          fi
        fi
        eval "looks_$1='$st_a $st_u $st_g'"
        ids "$6" "$7"
        [ "$st_a $st_u $st_g" = "$5 $w_uid $w_gid" ] || eval "mode_$1='mode $st_a $st_u $st_g'"
        [ -n "$need" ] || eval "need=\${mode_$1:-}"
        ;;
      *) need=kind ;;
      esac
      next
    fi
    needs "$1" "$need"
    ;;
  hash)
    needed "$1" && [ "$need" = hash ] || return 0
    if [ "$sum_path" = "$R$3" ]; then
      if [ "$sum" = "$9" ]; then eval "need=\${mode_$1:-}"; else need=content; fi
      next_sum
    else
      need=content
    fi
    needs "$1" "$need"
    [ -n "$need" ] || eval "settle_$1=1"
    ;;
  want)
    needed "$1" || return 0
    case $need in absent | content | kind) [ -f "$T/f/$1" ] || { say "wanting $1"; wanting=1; } ;; esac
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" file "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    case $need in
    mode*)
      cp "$R$3" "$T/f/$1" 2>"$out" && chown "$6:$7" "$T/f/$1" 2>"$out" && chmod "$5" "$T/f/$1" 2>"$out" ||
        fail "$1" "cannot set owner and mode of $R$3"
      ;;
    *)
      # A user whom only a package of this task brought was unknown when the contents arrived.
      [ "$6$7" = rootroot ] || { chown "$6:$7" "$T/f/$1" && chmod "$5" "$T/f/$1"; } 2>"$out" || fail "$1" "cannot give $R$3 to $6:$7"
      ;;
    esac
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/f/$1" "$R$3" "$2" "$device"
    case $3 in */systemd/*) reload=1 ;; esac
    eval "path_$1=\$R\$3 settle_$1=1"
    done_deed "$1"
    ;;
  collect)
    eval "settled=\${settle_$1:-}"
    [ -z "$settled" ] || changed="$changed \"\$path_$1\""
    ;;
  settle)
    eval "settled=\${settle_$1:-}"
    [ -n "$settled" ] || return 0
    if [ "$st_n" = "$R$3" ]; then
      [ "$st_s" = "$8" ] || fail "$1" "$R$3 has $st_s bytes instead of $8"
      ids "$6" "$7"
      [ "$st_a $st_u $st_g" = "$5 $w_uid $w_gid" ] || fail "$1" "$R$3 is $st_a $st_u:$st_g instead of $5 $6:$7; is there such a user and group?"
      [ ! -f "$S/record/$2" ] || printf '%s\n' "$9 $st_s $st_day $st_time $st_zone $st_i" >"$S/record/$2.is"
      next
    fi
    ;;
  esac
}

# link I KEY PATH UP TARGET
link() {
  case $phase in
  look)
    need=absent
    if [ "$st_n" = "$R$3" ]; then
      case $st_f in
      a???) [ "$(readlink "$R$3")" = "$5" ] && need= || need=content ;;
      *) need=kind ;;
      esac
      next
    fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" link "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    rm -f "$T/link" && ln -s "$5" "$T/link" 2>"$out" || fail "$1" "cannot make a link"
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/link" "$R$3" "$2" "$device"
    case $3 in */systemd/*) reload=1 ;; esac
    done_deed "$1"
    ;;
  esac
}

# absent I KEY PATH
absent() {
  case $phase in
  look)
    need=
    if [ "$st_n" = "$R$3" ]; then need=there; next; fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" absent "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  deed)
    if ! needed "$1"; then
      # A package of this task may have brought it.
      [ -n "$packaged" ] && { [ -e "$R$3" ] || [ -h "$R$3" ]; } || return 0
      own "$2"
      load "$2" || note "$2" absent absent "$3" -
      flush_records
    fi
    begin_deed "$1"
    rm -f "$R$3" 2>"$out" || fail "$1" "cannot remove $R$3"
    case $3 in */systemd/*) reload=1 ;; esac
    done_deed "$1"
    ;;
  esac
}

# unit I KEY NAME ENABLED STATE TRIGGERS: ENABLED yes, no or -; STATE started, stopped or -;
# TRIGGERS the numbers of operations whose change asks for a restart, each followed by a comma.
unit() {
  case $phase in
  look)
    unit_state "$3"
    need=
    case $4,$u_file in yes,enabled* | yes,static | yes,alias | yes,generated | yes,indirect) ;; yes,*) need="$need disabled" ;; no,enabled*) need="$need enabled" ;; esac
    case $5,$u_active in started,active) ;; started,*) need="$need $u_active" ;; stopped,active | stopped,activating | stopped,reloading) need="$need $u_active" ;; esac
    [ ! -f "$S/record/$2.pending" ] || need="$need pending"
    triggers=$6
    while [ -n "$triggers" ]; do
      eval "moved=\${need_${triggers%%,*}:-}"
      triggers=${triggers#*,}
      [ -z "$moved" ] || { need="$need trigger"; break; }
    done
    need=${need# }
    needs "$1" "$need"
    eval "was_$1=\"\$u_file \$u_active\""
    ;;
  hash)
    # A file that only seemed to differ asks for nothing.
    needed "$1" || return 0
    case $need in
    *trigger)
      triggers=$6
      while [ -n "$triggers" ]; do
        eval "moved=\${need_${triggers%%,*}:-}"
        triggers=${triggers#*,}
        [ -z "$moved" ] || return 0
      done
      need=${need%trigger}
      needs "$1" "${need% }"
      ;;
    esac
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        eval "was=\$was_$1"
        case $was in absent*) ;; *) ! is_packaged "$3" || was='absent inactive' ;; esac
        note "$2" unit there "$3" "$was"
      fi
      case $need in *trigger | *pending) : >"$S/record/$2.pending" ;; esac
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    if ! needed "$1"; then
      # A package of this task may have enabled and started it.
      [ -n "$packaged" ] || return 0
      u_now=$nl$(systemctl show -p UnitFileState -p ActiveState "$3" 2>/dev/null </dev/null 9>&-)$nl
      case $4,$u_now in no,*"${nl}UnitFileState=enabled"*) need=enabled ;; esac
      case $5,$u_now in stopped,*"${nl}ActiveState=active$nl"*) need="$need active" ;; esac
      [ -n "$need" ] || return 0
      eval "was=\$was_$1"
      own "$2"
      load "$2" || note "$2" unit there "$3" "$was"
      flush_records
    fi
    begin_deed "$1"
    # The run that changed its file died before systemd was told.
    case $need in *pending*) reload=1 ;; esac
    reload_units "$1"
    case $4,$need in
    yes,*disabled*) within "$patient" systemctl enable "$3" || fail "$1" "cannot enable $3" ;;
    no,*enabled*) within "$patient" systemctl disable "$3" || fail "$1" "cannot disable $3" ;;
    esac
    case $5,$need in
    started,*trigger | started,*pending) verb=restart ;;
    started,*) verb=start ;;
    stopped,*) verb=stop ;;
    *) verb= ;;
    esac
    [ -z "$verb" ] || within "$patient" systemctl "$verb" "$3" || {
      { systemctl status --no-pager --full --lines=0 "$3"; journalctl --no-pager --lines=20 --unit "$3"; } >>"$out" 2>&1 </dev/null 9>&-
      fail "$1" "cannot $verb $3"
    }
    rm -f "$S/record/$2.pending"
    done_deed "$1"
    ;;
  esac
}

reload_units() {
  [ -n "$reload" ] || return 0
  within "$patient" systemctl daemon-reload || fail "$1" "systemd did not read its units again"
  reload=
}

# unit_state NAME: from the one answer of systemctl, whose parts come in the order of the operations.
unit_state() {
  u_file= u_active=inactive
  while IFS= read -r line <&5; do
    case $line in
    UnitFileState=*) u_file=${line#*=} ;;
    ActiveState=*) u_active=${line#*=} ;;
    '') break ;;
    esac
  done
  u_file=${u_file:-absent}
}

# sysctl I KEY NAME PATH VALUE: VALUE with single spaces.
sysctl() {
  case $phase in
  look)
    need=
    if read_value "$R/proc/sys/$4"; then [ "$value" = "$5" ] || need="value $value"; else need=absent; fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      load "$2" || { read_value "$R/proc/sys/$4" && note "$2" sysctl there "$4" "$value"; }
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    if ! load "$2"; then
      # Its module was loaded by this very task: only now there is a value to keep.
      read_value "$R/proc/sys/$4" || fail "$1" "the kernel has no $3; is its module loaded?"
      note "$2" sysctl there "$4" "$value"
      flush_records
    fi
    { printf '%s\n' "$5" >"$R/proc/sys/$4"; } 2>"$out" || fail "$1" "cannot set $3 to $5"
    done_deed "$1"
    ;;
  esac
}

# The words of a file. The kernel gives the whole of a number only to who asks for more than
# one byte at a time, which `read` of dash and ash does not.
read_value() {
  value=
  [ -r "$1" ] && value=$(cat "$1" 2>/dev/null) || return 1
  set -f
  # shellcheck disable=SC2086 # this is what joins the words
  set -- $value
  set +f
  value=$*
}

# module I KEY NAME
module() {
  case $phase in
  look)
    need=
    has_module "$3" || need=absent
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      load "$2" || note "$2" module absent "$3" -
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    within 60 modprobe "$3" || fail "$1" "the kernel has no module $3"
    done_deed "$1"
    ;;
  esac
}

# Loaded, or part of the kernel; some built-in ones show only in what they bring.
has_module() {
  [ ! -d "$R/sys/module/$1" ] || return 0
  case $1 in
  br_netfilter) [ -d "$R/proc/sys/net/bridge" ] && return ;;
  overlay) grep -q '	overlay$' "$R/proc/filesystems" 2>/dev/null && return ;;
  nf_conntrack) [ -e "$R/proc/sys/net/netfilter/nf_conntrack_max" ] && return ;;
  esac
  IFS= read -r release 2>/dev/null </proc/sys/kernel/osrelease || release=
  grep -q "/$1\.ko" "$R/lib/modules/$release/modules.builtin" 2>/dev/null
}

# hosts_entry I KEY LINE BASE UP: a line of /etc/hosts; BASE is the record of the file itself.
hosts_entry() {
  case $phase in
  look)
    [ -n "${hosts+x}" ] || { hosts=$(cat "$R/etc/hosts" 2>/dev/null; echo .); hosts=$nl${hosts%.}$nl; }
    case $hosts in *"$nl$3$nl"*) needs "$1" '' ;; *) needs "$1" absent ;; esac
    ;;
  record)
    if needed "$1"; then
      load "$4" || keep_linked_hosts "$1" "$4"
      keep "$1" "$4" hosts "$R/etc/hosts" /etc/hosts
      own "$2"
      load "$2" || note "$2" hosts_entry absent "$3" "$4"
    elif load "$2"; then
      own "$2"
      own "$4"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    if [ -z "$hosts_own" ]; then
      # Another inode than the original, which is kept.
      cp -p "$R/etc/hosts" "$T/hosts" 2>/dev/null || { : >"$T/hosts" && chmod 644 "$T/hosts"; }
      [ ! -s "$T/hosts" ] || [ -z "$(tail -c 1 "$T/hosts")" ] || echo >>"$T/hosts"
      eval "device=\${dev_$5:-?}"
      put "$1" "$T/hosts" "$R/etc/hosts" "$4" "$device"
      hosts_own=1
    fi
    { printf '%s\n' "$3" >>"$R/etc/hosts"; } 2>"$out" || fail "$1" "cannot write /etc/hosts"
    done_deed "$1"
    ;;
  esac
}

# keep_linked_hosts I KEY: a link is replaced by a file, and comes back when nobody else wrote to that file. What
# it leads to may be another text by then, so the one that we began with is kept.
keep_linked_hosts() {
  [ -h "$R/etc/hosts" ] || return 0
  { [ ! -f "$R/etc/hosts" ] || cat "$R/etc/hosts"; } >"$S/record/$2.text" 2>"$out" || fail "$1" "cannot keep what /etc/hosts leads to"
  news="$news $2.text"
}

# hostname_is I KEY NAME UP
hostname_is() {
  case $phase in
  look)
    need=
    read_value "$R/proc/sys/kernel/hostname" && [ "$value" = "$3" ] || need="name $value"
    kernel_name=$value
    read_value "$R/etc/hostname" && [ "$value" = "$3" ] || need=${need:-file}
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      # The kernel's name is a record of its own: it need not be the one in the file.
      load "$2.kernel" || note "$2.kernel" kernel_hostname there "$kernel_name" -
      own "$2.kernel"
      keep "$1" "$2" file "$R/etc/hostname" /etc/hostname
    elif load "$2"; then
      own "$2"
      own "$2.kernel"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    printf '%s\n' "$3" >"$T/hostname" && chmod 644 "$T/hostname"
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/hostname" "$R/etc/hostname" "$2" "$device"
    { printf '%s\n' "$3" >"$R/proc/sys/kernel/hostname"; } 2>"$out" || fail "$1" "cannot set the hostname"
    done_deed "$1"
    ;;
  esac
}

# firewall I KEY PORT PROTOCOL BASE ADDRESS: ADDRESS is where others reach this machine, or a dash.
firewall() {
  case $phase in
  look)
    look_firewall
    need=
    case $wall in
    firewalld) port_zones "$6"; wall_need "$3/$4" "$wall_zones" ;;
    ufw)
      ufw_name "$3/$4"
      case "$nl$wall_kept$nl" in *"${nl}ufw allow $ufw_name$nl"* | *"${nl}ufw allow $ufw_name comment '"*) ;; *) need=closed ;; esac
      ;;
    esac
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      case $wall in
      firewalld) wall_record "$1" "$2" "$5" "$3/$4" "$wall_zones" ;;
      *) own "$2"; load "$2" || note "$2" firewall "$wall" "$3/$4" "- ufw" ;;
      esac
    elif load "$2"; then
      own "$2"
      own "$5"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    case $wall in
    firewalld) wall_add "$1" port "$3/$4" "$3/$4" "$wall_zones" ;;
    ufw) ufw_name "$3/$4"; within 60 ufw allow "$ufw_name" || fail "$1" "ufw does not open $3/$4" ;;
    esac
    done_deed "$1"
    ;;
  esac
}

# trusted_network I KEY NETWORK BASE: firewalld takes whatever comes from there. ufw lets packets pass that others accept.
trusted_network() {
  case $phase in
  look)
    look_firewall
    need=
    [ "$wall" != firewalld ] || wall_need "from:$3" trusted
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      wall_record "$1" "$2" "$4" "from:$3" trusted
    elif load "$2"; then
      own "$2"
      own "$4"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    wall_add "$1" source "$3" "from:$3" trusted
    done_deed "$1"
    ;;
  esac
}

# A range is written with a colon there.
ufw_name() {
  ufw_name=$1
  case $1 in *-*) ufw_name=${1%%-*}:${1#*-} ;; esac
}

look_firewall() {
  [ -z "${wall+x}" ] || return 0
  wall=none wall_now= wall_kept=
  if firewalld_runs; then
    wall=firewalld
    wall_now=$nl$(firewall-cmd --list-all-zones 2>/dev/null </dev/null | zone_entries)$nl
    wall_kept=$nl$(firewall-cmd --permanent --list-all-zones 2>/dev/null </dev/null | zone_entries)$nl
  elif case "$(ufw status 2>/dev/null </dev/null)" in "Status: active"*) true ;; *) false ;; esac; then
    wall=ufw
    wall_kept=$(ufw show added 2>/dev/null)
  fi
}

firewalld_runs() {
  [ "$(firewall-cmd --state 2>/dev/null </dev/null)" = running ]
}

# A line for each thing in a zone: "ZONE 6443/tcp", "ZONE from:10.0.0.0/8", "ZONE at:eth0", "ZONE target:default".
zone_entries() {
  while IFS= read -r line; do
    case $line in
    '  ports: '*) set_entries '' "${line#*: }" ;;
    '  sources: '*) set_entries from: "${line#*: }" ;;
    '  interfaces: '*) set_entries at: "${line#*: }" ;;
    '  target: '*) set_entries target: "${line#*: }" ;;
    ' '* | '	'* | '') ;;
    *) entries_of=${line%% *} ;;
    esac
  done
}

set_entries() {
  set -f
  for entry in $2; do printf '%s %s%s\n' "$entries_of" "$1" "$entry"; done
  set +f
}

# port_zones ADDRESS: the zones that packets to this machine's address come in by: that of its interface, otherwise the default
# one, and those that were made for networks of senders, unless they turn everything away. A zone that takes everything needs no port.
port_zones() {
  [ -z "${wall_zones+x}" ] || return 0
  device=
  [ "$1" = - ] || device=$(ip -o addr show to "$1" 2>/dev/null | { read -r _ device _ && printf %s "${device%%@*}"; })
  zone=
  [ -z "$device" ] || zone=$(printf %s "$wall_now" | sed -n "s/ at:$device\$//p" | head -n 1)
  [ -n "$zone" ] || zone=$(firewall-cmd --get-default-zone 2>/dev/null </dev/null)
  candidates=$zone
  for z in $(printf %s "$wall_now" | sed -n 's/ from:.*//p' | sort -u); do
    case $wall_now in *"$nl$z target:default$nl"*) [ "$z" = "$zone" ] || candidates="$candidates $z" ;; esac
  done
  wall_zones=
  for z in $candidates; do
    case $wall_now in *"$nl$z target:ACCEPT$nl"*) ;; *) wall_zones="$wall_zones $z" ;; esac
  done
}

# wall_has ENTRIES ZONE ENTRY: a network can be in one zone only, and who put it into another has decided. A port may be
# part of a range.
wall_has() {
  overlaps=
  case $3 in from:*) case $1 in *" $3$nl"*) return 0 ;; *) return 1 ;; esac ;; esac
  find_overlaps "$1" "$2" "$3"
  [ -n "$covering" ]
}

# find_overlaps ENTRIES ZONE PORTS: which ports of the zone have some of these, and which has all.
find_overlaps() {
  overlaps= covering= o_ifs=$IFS
  bounds "$3"
  set -- "$1" "$2" "$3" "$low" "$high"
  IFS=$nl
  set -f
  for o_line in $1; do
    case $o_line in "$2 "[0-9]*"/${3#*/}") ;; *) continue ;; esac
    bounds "${o_line#* }"
    [ "$low" -le "$5" ] && [ "$high" -ge "$4" ] || continue
    overlaps="$overlaps ${o_line#* }"
    [ "$low" -gt "$4" ] || [ "$high" -lt "$5" ] || covering=${o_line#* }
  done
  set +f
  IFS=$o_ifs
}

# bounds PORTS: the first and the last of "2379/tcp" or "30000-32767/tcp".
bounds() {
  high=${1%/*}
  low=${high%-*} high=${high#*-}
}

# list_own_ports ZONE [KEY]: what other records than KEY say that we opened there.
list_own_ports() {
  own_ports=
  for f in "$S"/record/*; do
    case ${f##*/} in *.* | *@*) continue ;; esac
    case " $forgotten ${2:-} " in *" ${f##*/} "*) continue ;; esac
    { IFS=' ' read -r o_kind _ o_was; IFS= read -r o_name; IFS= read -r o_extra; } 2>/dev/null <"$f" || continue
    case "$o_kind $o_was, $o_extra " in "firewall firewalld,"*" $1 "*) own_ports="$own_ports $o_name" ;; esac
  done
}

# wall_need ENTRY ZONES
wall_need() {
  need=
  for z in $2; do
    if ! wall_has "$wall_now" "$z" "$1"; then
      need=closed
    elif ! wall_has "$wall_kept" "$z" "$1"; then
      need=${need:-not-permanent}
    fi
  done
}

# wall_record I KEY BASE ENTRY ZONES: in which zones it is going to be added, and what the files of these are.
wall_record() {
  how=
  for z in $5; do
    h=
    for way in now kept; do
      eval "entries=\$wall_$way"
      ! wall_has "$entries" "$z" "$4" || continue
      h="$h $way"
      # firewalld makes one range of ours and of others that have a part of it.
      [ -z "$overlaps" ] || list_own_ports "$z"
      for p in $overlaps; do case " $own_ports " in *" $p "*) ;; *) h="$h $way:$p" ;; esac; done
    done
    [ -n "$h" ] || continue
    how="$how $z$h"
    keep_zone "$1" "$3" "$z"
  done
  own "$2"
  own "$3"
  if ! load "$2"; then
    note "$2" firewall firewalld "${4#from:}" "${how# }"
    return
  fi
  # A zone that came into use since then.
  extra=$l_extra adding=
  for h in $how; do
    case $h in
    now | kept | now:* | kept:*) [ -z "$adding" ] || extra="$extra $h" ;;
    *) case " $extra " in *" $h "*) adding= ;; *) adding=1 extra="$extra $h" ;; esac ;;
    esac
  done
  [ "$extra" = "$l_extra" ] || amend "$1" "$2" "$l_name" "$extra"
}

# wall_add I KIND VALUE ENTRY ZONES
wall_add() {
  for z in $5; do
    wall_has "$wall_now" "$z" "$4" || within 60 firewall-cmd --zone="$z" --add-"$2=$3" || fail "$1" "firewalld does not take $3 into its zone $z"
    wall_has "$wall_kept" "$z" "$4" || within 60 firewall-cmd --permanent --zone="$z" --add-"$2=$3" || fail "$1" "firewalld does not take $3 into its zone $z for good"
  done
}

# keep_zone I KEY ZONE: firewalld writes a zone's file when something is added for good, and leaves it there.
keep_zone() {
  zones=
  if load "$2"; then
    case " $l_name " in *" $3 "*) return 0 ;; esac
    zones=$l_name
  else
    rm -rf "$S/record/$2.zone"
  fi
  [ -d "$S/record/$2.zone" ] || mkdir "$S/record/$2.zone" || fail "$1" "cannot keep firewalld's zone"
  for f in "$3.xml" "$3.xml.old"; do
    [ ! -f "$R/etc/firewalld/zones/$f" ] || cp -a "$R/etc/firewalld/zones/$f" "$S/record/$2.zone/" || fail "$1" "cannot keep firewalld's zone"
    [ ! -f "$S/record/$2.zone/$f" ] || news="$news $2.zone/$f"
  done
  list_zone "$3" >"$S/record/$2.zone/$3.list"
  news="$news $2.zone/$3.list"
  if [ -z "$zones" ]; then note "$2" firewall_zone there "$3" -; else amend "$1" "$2" "$zones $3" -; fi
}

list_zone() {
  if firewalld_runs; then
    firewall-cmd --permanent --zone="$1" --list-all 2>/dev/null </dev/null
  else
    firewall-offline-cmd --zone="$1" --list-all 2>/dev/null </dev/null
  fi
}

# user I KEY NAME HOME: a user of the system's own with a group of the same name, whom nobody can log in as.
user() {
  case $phase in
  look)
    need=
    has_account passwd "$3" && has_account group "$3" || need=absent
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        how=
        has_account passwd "$3" || how=user
        has_account group "$3" || how="$how group"
        keep_accounts "$1" "$2"
        note "$2" user absent "$3" "${how# }"
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    shell=/bin/false
    for f in /sbin/nologin /usr/sbin/nologin; do [ ! -x "$f" ] || shell=$f; done
    if command -v useradd >/dev/null; then
      has_account group "$3" || within 60 groupadd -r "$3" || fail "$1" "cannot make the group $3"
      has_account passwd "$3" || within 60 useradd -r -M -g "$3" -d "$4" -s "$shell" "$3" || fail "$1" "cannot make the user $3"
    else
      has_account group "$3" || within 60 addgroup -S "$3" || fail "$1" "cannot make the group $3"
      has_account passwd "$3" || within 60 adduser -S -D -H -G "$3" -h "$4" -s "$shell" "$3" || fail "$1" "cannot make the user $3"
    fi
    done_deed "$1"
    ;;
  esac
}

# has_account passwd|group NAME: wherever the machine keeps them.
has_account() {
  if [ -z "$R" ] && command -v getent >/dev/null; then
    getent "$1" "$2" >/dev/null 2>&1 </dev/null
  else
    grep -q "^$2:" "$R/etc/$1" 2>/dev/null
  fi
}

# keep_accounts I KEY: the very files, and the copies that tools leave beside them, so that their times come back too.
keep_accounts() {
  rm -rf "$S/record/$2.users"
  mkdir "$S/record/$2.users" || fail "$1" "cannot keep the list of users"
  for f in passwd passwd- group group- shadow shadow- gshadow gshadow- .pwd.lock; do
    [ -f "$R/etc/$f" ] || continue
    # The lists are replaced, their copies are written in place.
    case $f in *-) false ;; *) ln "$R/etc/$f" "$S/record/$2.users/$f" 2>/dev/null ;; esac ||
      cp -a "$R/etc/$f" "$S/record/$2.users/$f" || fail "$1" "cannot keep the list of users"
    news="$news $2.users/$f"
  done
}

# package I KEY NAME GROUP VERSION FROM: FROM `repo`, or from the file that came as I. GROUP is
# the number of the first operation of those that are installed together.
package() {
  case $phase in
  look)
    look_packages
    need=
    case "$nl$installed$nl" in
    # A file's name need not tell the epoch.
    *"$nl$3 $5$nl"* | *"$nl$3 "[0-9]":$5$nl"*) ;;
    *"$nl$3 "*)
      # Somebody else's package is left at its version; ours follows the wish.
      [ "$5" = '*' ] || [ ! -f "$S/record/$2" ] || need=version
      ;;
    *) need=absent ;;
    esac
    [ -n "$manager" ] || need=no-package-manager
    needs "$1" "$need"
    ;;
  want)
    needed "$1" || return 0
    eval "keys_$4=\"\${keys_$4:-} \$2\""
    if [ "$6" = repo ]; then
      eval "batch_$4=\"\${batch_$4:-} \$3\""
    else
      eval "batch_$4=\"\${batch_$4:-} \$1\""
      [ -f "$T/f/$1" ] || { say "wanting $1"; wanting=1; }
    fi
    ;;
  record)
    if needed "$1"; then
      [ -n "$manager" ] || fail "$1" "neither dpkg nor rpm is there"
      own "$2"
      if ! load "$2"; then
        was=absent
        [ "$manager" != dpkg ] || [ "$(dpkg-query -W -f '${db:Status-Status}' "$3" 2>/dev/null)" != config-files ] || was=config-files
        note "$2" package "$was" "$3" "$manager"
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    eval "batch=\$batch_$4 done_batch=\${did_batch_$4:-}"
    begin_deed "$1"
    if [ -z "$done_batch" ]; then
      eval "tried=\"\$tried \$keys_$4\""
      forbid_starts "$1"
      # shellcheck disable=SC2086 # names of packages and numbers have no spaces
      install_packages "$1" "$6" $batch
      allow_starts
      eval "disown_others \$keys_$4"
      packaged=1
      eval "did_batch_$4=1"
    fi
    has_package "$3" || fail "$1" "$3 is still not installed; what was installed goes by another name"
    done_deed "$1"
    ;;
  esac
}

look_packages() {
  [ -z "${installed+x}" ] || return 0
  find_manager
  installed=$(list_packages)
}

find_manager() {
  [ -z "${manager+x}" ] || return 0
  manager=
  if command -v dpkg-query >/dev/null; then manager=dpkg; elif command -v rpm >/dev/null; then manager=rpm; fi
}

# Each installed package as "name version".
list_packages() {
  case $manager in
  dpkg) dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' 2>/dev/null | sed -n 's/^installed //p' ;;
  rpm) rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' 2>/dev/null ;;
  esac | sort -u
}

# The names of those too that an interrupted dpkg left half way: their files are there.
list_traces() {
  case $manager in
  dpkg) dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n '/^not-installed /d;/^config-files /d;s/^[^ ]* //p' ;;
  rpm) rpm -qa --qf '%{NAME}\n' 2>/dev/null ;;
  esac | sort -u
}

has_package() {
  case $manager in
  dpkg) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  rpm) rpm -q "$1" >/dev/null 2>&1 ;;
  esac
}

# A busy package manager is waited for, with a deadline. A transaction begins anew before the next try: whoever was busy
# may have brought packages.
when_free() {
  busy_since=
  while ! while_alive "$patient" "$@"; do
    is_locked_out || return 1
    while :; do
      uptime_now
      busy_since=${busy_since:-$now}
      [ "$((now - busy_since))" -lt "$patient" ] || { echo "the package manager was busy for $patient s" >>"$out"; return 1; }
      sleep 1
      is_held || break
    done
    [ -z "$transaction" ] || begin_transaction || return
  done
}

# Was another's lock in its way from the beginning? One that is already at work has a lock, and what is locked then is
# something that a package's script wants: debconf's database, or rpm's.
is_locked_out() {
  grep -qi 'could not get lock\|frontend lock\|is locked by another\|transaction lock\|database lock\|status database area\|already locked by\|holding the yum lock' "$out" &&
    ! grep -q '^Unpacking \|^Setting up \|scriptlet' "$out"
}

# Where apt says which process has its lock: has it still?
is_held() {
  holder=$(sed -n 's/.*held by process \([0-9]*\).*/\1/p' "$out" | head -n 1)
  [ -n "$holder" ] && grep -q "POSIX .* $holder " /proc/locks 2>/dev/null
}

uptime_now() {
  IFS=' .' read -r now _ </proc/uptime
}

# bring COMMAND...: one run of the package manager, and the transaction around it.
bring() {
  begin_transaction || fail "$set_aside" "cannot list the packages that are there"
  transaction=1
  when_free "$@"
  set -- $?
  transaction= transacted=
  # dnf's words for a transaction of rpm that did not get to its end.
  [ "$1" = 0 ] || is_locked_out || ! grep -qi 'transaction failed\|scriptlet' "$out" || transacted=1
  account
  return "$1"
}

# Nobody else's package is removed for ours.
apt_install() {
  asked=$*
  bring apt-get install -y -q --no-install-recommends --no-remove -o Dpkg::Options::=--force-confold "$@"
}

# Packages that an interrupted dpkg left half way. No others come with that.
complete_packages() {
  [ -n "$(dpkg --audit 2>/dev/null)" ] || return 0
  asked=
  bring dpkg --configure -a || :
}

# install_packages I FROM WORDS: names, or the numbers of the files that came.
install_packages() {
  set_aside=$1 source=$2
  shift 2
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
  case $source in files) cd "$T/f" || fail "$set_aside" "the files are gone" ;; esac
  [ "$manager" != dpkg ] || complete_packages
  asked=$*
  case $manager,$source in
  dpkg,repo)
    apt_install "$@" || {
      grep -q 'Unable to locate\|has no installation candidate\|404' "$out" && when_free apt-get update -q && apt_install "$@"
    } && {
      # One that was cut off while it was unpacked counts as the newest there is.
      broken=
      for p in "$@"; do has_package "$p" || broken="$broken $p"; done
      # shellcheck disable=SC2086
      [ -z "$broken" ] || apt_install --reinstall $broken
    } && return
    ;;
  rpm,repo)
    # One that waits for another by itself would wait without a limit.
    set -- install -y -q --setopt=exit_on_lock=True "$@"
    if command -v dnf >/dev/null; then bring dnf "$@" && return; else bring yum "$@" && return; fi
    ;;
  dpkg,files)
    bring dpkg --force-confold -i "$@" && cd / && return
    grep -q 'dependency problems\|pre-dependency' "$out" && echo "installed although dependencies are missing" >"$out.note" &&
      bring dpkg --force-confold --force-depends -i "$@" && cd / && return
    ;;
  rpm,files)
    bring rpm -U --replacepkgs "$@" && cd / && return
    grep -q 'Failed dependencies' "$out" && bring rpm -U --replacepkgs --nodeps "$@" && cd / && return
    ;;
  esac
  cd /
  fail "$set_aside" "cannot install $asked"
}

# disown_others KEYS: what others installed while we waited is theirs, although it was going to be ours.
disown_others() {
  for key; do
    case " $brought , $made" in *" $key "*,*) ;; *,*":$key "*) forget "$key" ;; esac
  done
}

# A transaction that was cut off has left files that its package manager does not know of. Their names are taken from
# the archives, which are still there.
strewn() {
  [ -s "$S/transaction" ] || return 0
  look_packages
  : >"$S/leftovers.new"
  [ ! -f "$S/leftovers" ] || cat "$S/leftovers" >"$S/leftovers.new"
  for f in "$S"/in/*/f/* "$R"/var/cache/apt/archives/*.deb "$R"/var/cache/dnf/*/packages/*.rpm "$R"/var/cache/yum/*/*/*/packages/*.rpm; do
    [ -f "$f" ] || continue
    case $manager in
    dpkg) n=$(dpkg-deb -f "$f" Package 2>/dev/null) ;;
    rpm) n=$(rpm -qp --qf '%{NAME}' "$f" 2>/dev/null) ;;
    *) n= ;;
    esac || continue
    [ -n "$n" ] && ! grep -qxF -e "$n" "$S/transaction" && is_planned "$n" && ! has_package "$n" || continue
    case $manager in
    dpkg) dpkg-deb --fsys-tarfile "$f" | tar -t | sed 's|^\./|/|;s|/$||' ;;
    rpm) rpm -qlp "$f" ;;
    esac >>"$S/leftovers.new" 2>/dev/null
  done
  mv -f "$S/leftovers.new" "$S/leftovers"
}

# After the packages themselves are gone. A configuration file gets its name only when its package is complete.
clear_leftovers() {
  [ -s "$S/leftovers" ] || return 0
  sort -ru "$S/leftovers" | while IFS= read -r p; do
    case $p in /?*) p=$R$p ;; *) continue ;; esac
    [ ! -e "$p.dpkg-tmp" ] || mv -f "$p.dpkg-tmp" "$p"
    rm -f "$p.dpkg-new"
    for f in "$p;"????????; do [ ! -f "$f" ] || rm -f "$f"; done
    case $p in "$R"/etc/*) [ -d "$p" ] || continue ;; esac
    [ -e "$p" ] || [ -h "$p" ] || continue
    case $manager in dpkg) dpkg -S "$p" ;; rpm) rpm -qf "$p" ;; esac >/dev/null 2>&1 && continue
    if [ -d "$p" ] && [ ! -h "$p" ]; then rmdir "$p" 2>/dev/null; else rm -f "$p"; fi
  done
  rm -f "$S/leftovers"
}

# What is going to be installed, and what is there before: packages, what their scripts may add beside their files, and
# files below /etc. The lists come last, right before the package manager takes its lock.
begin_transaction() {
  list_plan
  list_surroundings >"$S/surroundings" 2>/dev/null || return
  (cd "$R/" && find etc -xdev -type f) >"$S/etc.list" 2>/dev/null
  flush "$S/surroundings" "$S/etc.list"
  { echo ": $owner"; list_traces; [ -z "$plan" ] || printf '%s\n' "$plan"; } >"$S/transaction.new" && flush "$S/transaction.new" && mv -f "$S/transaction.new" "$S/transaction"
}

# The plan, in lines after the names of what is there: "+" says that there is one, "+ NAME" is a package that is to come,
# "@ NAME" one that comes with others of the same rpm transaction.
list_plan() {
  plan=
  # shellcheck disable=SC2086 # names of packages and numbers have no spaces
  case $asked,$manager,$source in
  ,*) ;;
  *,files)
    plan=$(for f in $asked; do
      case $manager in dpkg) n=$(dpkg-deb -f "$f" Package) ;; rpm) n=$(rpm -qp --qf '%{NAME}' "$f") ;; esac && printf '+ %s\n' "$n" || exit 1
    done 2>/dev/null) || { plan=; return; }
    ;;
  *,dpkg,repo)
    while_alive "$patient" apt-get -s install -y -q --no-install-recommends --no-remove $asked
    plan=$(printf '+ %s\n' $asked; sed -n 's/^Inst \([^ :]*\).*/+ \1/p' "$out")
    ;;
  *,rpm,repo) plan=$(printf '@ %s\n' $asked) ;;
  esac
  plan=+${plan:+$nl$plan}
}

# is_planned NAME: always where an older release wrote no plan, and where rpm tells it only afterwards.
is_planned() {
  ! grep -qxF + "$S/transaction" || grep -q '^@ ' "$S/transaction" || grep -qxF -e "+ $1" "$S/transaction"
}

# What came with the transaction: of what is new only what it was to bring. Others may have installed something too,
# before it or after it was cut off.
list_brought() {
  new=$(list_traces | grep -vxF -f "$S/transaction") || return 0
  grep -qxF + "$S/transaction" || { printf '%s\n' "$new"; return; }
  planned=$(sed -n 's/^+ //p' "$S/transaction")
  names=$(sed -n 's/^@ //p' "$S/transaction")
  # shellcheck disable=SC2086 # names of packages have no spaces
  [ -z "$names" ] || planned=$planned$nl$(
    ids=$(rpm -q --whatprovides --qf '%{NAME} %{INSTALLTID}\n' $names 2>/dev/null | while IFS=' ' read -r n id; do
      case $nl$new$nl in *"$nl$n$nl"*) printf ' %s ' "$id" ;; esac
    done)
    [ -n "$ids" ] || { id=$(likely_id) && ids=${id:+ $id }; }
    rpm -qa --qf '%{NAME} %{INSTALLTID}\n' 2>/dev/null | while IFS=' ' read -r n id; do
      case $ids in *" $id "*) printf '%s\n' "$n" ;; esac
    done
  )
  printf '%s\n' "$new" | grep -xF -e "$planned"
}

# Which of rpm's transactions was ours, where nothing came of what it was asked for but some of what that needs. Others may
# have had theirs while dnf downloaded, which came before ours, and after a run of ours was cut off.
likely_id() {
  ids=$(rpm -qa --qf '%{NAME} %{INSTALLTID}\n' 2>/dev/null | while IFS=' ' read -r n id; do
    # A key of a repository comes by itself.
    case $n,$id in gpg-pubkey,* | *,*[!0-9]*) continue ;; esac
    case $nl$new$nl in *"$nl$n$nl"*) printf '%s\n' "$id" ;; esac
  done | sort -n)
  if [ "$phase" = deed ]; then
    [ -z "$transacted" ] || printf %s "${ids##*"$nl"}"
    return
  fi
  id=${ids%%"$nl"*} booted=$(sed -n 's/^btime //p' "$R/proc/stat" 2>/dev/null)
  # It is a time. What came after the machine started again was not brought by what ended with that.
  [ -z "$booted" ] || [ "$(stat -c %Y "$S/transaction")" -ge "$booted" ] || [ "${id:-0}" -lt "$booted" ] || return 0
  printf %s "$id"
}

# note_earlier NAMES: which configuration of these packages was there before them. What is still to be put back was too.
note_earlier() {
  [ $# != 0 ] && [ -f "$S/etc.list" ] || return 0
  case $manager in
  dpkg) dpkg-query -W -f '${Conffiles}\n' "$@" 2>/dev/null | sed -n 's|^ /\([^ ]*\) .*|\1|p' ;;
  rpm) rpm -qc "$@" 2>/dev/null | sed -n 's|^/||p' ;;
  esac >"$S/conffiles"
  if [ -s "$S/conffiles" ]; then
    {
      [ ! -f "$S/earlier" ] || while IFS= read -r p; do
        [ ! -f "$S/kept/$p" ] && grep -qxF -e "$p" "$S/conffiles" || printf '%s\n' "$p"
      done <"$S/earlier"
      grep -xF -f "$S/conffiles" "$S/etc.list"
    } | sort -u >"$S/earlier.new"
    flush "$S/earlier.new" && mv -f "$S/earlier.new" "$S/earlier"
    [ "$manager" != rpm ] || grep -xF -f "$S/conffiles" "$S/etc.list" | while IFS= read -r p; do stay_with_earlier "$p"; done
  fi
  rm -f "$S/conffiles"
}

# stay_with_earlier PATH: rpm moves such a file aside, or puts its own beside it. As with dpkg, what was there stays alone.
stay_with_earlier() {
  ! came_beside "$1.rpmorig" || mv -f "$R/$1.rpmorig" "$R/$1" 2>/dev/null
  ! came_beside "$1.rpmnew" || rm -f "$R/$1.rpmnew" 2>/dev/null
}

came_beside() {
  [ -f "$R/$1" ] && ! grep -qxF -e "$1" "$S/etc.list" && ! rpm -qf "/$1" >/dev/null 2>&1
}

# keep_earlier, put_earlier_back: packages that are purged take such files with them. rpm moves them away, over what an
# earlier package left under that name.
keep_earlier() {
  [ -s "$S/earlier" ] || return 0
  while IFS= read -r p; do
    [ -f "$R/$p" ] && [ ! -e "$S/kept/$p" ] || continue
    # The file itself comes last: with it everything is there.
    mkdir -p "$S/kept/${p%/*}" && { [ ! -f "$R/$p.rpmsave" ] || copy_file "$R/$p.rpmsave" "$S/kept/$p.rpmsave"; } && copy_file "$R/$p" "$S/kept/$p" || return
  done <"$S/earlier" 2>"$out"
}
put_earlier_back() {
  [ -d "$S/kept" ] || return 0
  find_manager
  while IFS= read -r p; do
    [ -f "$S/kept/$p" ] || continue
    [ -e "$R/$p" ] || [ -h "$R/$p" ] || { make_above "$R/$p" && copy_file "$S/kept/$p" "$R/$p"; } || { l_kind=file l_name=/$p; return 1; }
    if [ ! -f "$S/kept/$p.rpmsave" ]; then
      drop_moved "$R/$p"
    elif ! cmp -s "$S/kept/$p.rpmsave" "$R/$p.rpmsave"; then
      copy_file "$S/kept/$p.rpmsave" "$R/$p.rpmsave" || { l_kind=file l_name=/$p.rpmsave; return 1; }
    fi
  done <"$S/earlier" 2>"$out"
  rm -rf "$S/kept"
}

# copy_file FROM TO: the very inode where possible.
copy_file() {
  rm -f "$2" && { ln "$1" "$2" 2>/dev/null || cp -a "$1" "$2"; }
}

# drop_moved PATH: what rpm moved away when it erased a package, when the same is at its place again.
drop_moved() {
  [ "$manager" != rpm ] || [ ! -f "$1.rpmsave" ] || ! cmp -s "$1" "$1.rpmsave" || rm -f "$1.rpmsave"
}

# System users and groups, and directories with mode and owner, in places that scripts of packages make use of.
list_surroundings() {
  for kind in passwd group; do
    [ ! -f "$R/etc/$kind" ] || while IFS=: read -r name _ id _; do
      case $id in '' | *[!0-9]*) ;; *) [ "$id" -ge 1000 ] || printf '%s %s\n' "$kind" "$name" ;; esac
    done <"$R/etc/$kind"
  done
  set --
  for above in /var /var/lib /var/log /var/cache; do
    for place in "$R$above"/*; do [ ! -d "$place" ] || [ -h "$place" ] || set -- "$@" "$place"; done
  done
  [ $# = 0 ] || stat -c 'looks %a %u %g %n' "$@" || :
}

# note_surroundings NAMES: what the scripts of these packages leave is not taken away with them: undo does that, when all
# packages are gone. After a run that died nobody knows what others have made since. Others may be at work at the same
# time without a lock, so only what the packages name counts.
note_surroundings() {
  [ "$phase" = deed ] && [ -f "$S/surroundings" ] || return 0
  { [ ! -f "$S/aftermath" ] || cat "$S/aftermath"; } >"$S/aftermath.new"
  texts_of "$@" >"$S/texts" 2>/dev/null
  list_surroundings 2>/dev/null | grep -vxF -f "$S/surroundings" | while IFS=' ' read -r kind mode uid gid path; do
    case $kind in looks) name=${path##*/} ;; *) name=$mode ;; esac
    grep -qwF -e "$name" "$S/texts" || continue
    case $kind in
    passwd | group) printf '%s\n' "$kind $mode" ;;
    looks)
      before=$(grep -e '^looks [0-9]* [0-9]* [0-9]* /' "$S/surroundings" | while IFS=' ' read -r _ b_mode b_uid b_gid b_path; do
        [ "$b_path" != "$path" ] || printf '%s' "$b_mode $b_uid $b_gid"
      done)
      if [ -z "$before" ]; then
        find "$path" -xdev 2>/dev/null | head -n 1000 | sed 's/^/path /'
      elif ! grep -qe "^looks [0-9]* [0-9]* [0-9]* $path\$" "$S/aftermath.new"; then
        printf '%s\n' "looks $before $path"
      fi
      ;;
    esac
  done >"$S/aftermath.more"
  cat "$S/aftermath.more" >>"$S/aftermath.new"
  rm -f "$S/aftermath.more" "$S/texts"
  if [ -s "$S/aftermath.new" ]; then flush "$S/aftermath.new" && mv -f "$S/aftermath.new" "$S/aftermath"; else rm -f "$S/aftermath.new"; fi
}

# texts_of NAMES: where packages name what they make beside their files.
texts_of() {
  case $manager in
  dpkg) for n; do for f in "$R/var/lib/dpkg/info/$n".* "$R/var/lib/dpkg/info/$n":*.*; do [ ! -f "$f" ] || cat "$f"; done; done ;;
  rpm) rpm -q --scripts "$@"; rpm -ql "$@" | grep '^/var/' ;;
  esac
  case $manager in dpkg) dpkg -L "$@" ;; rpm) rpm -ql "$@" ;; esac | grep -E '/(sysusers|tmpfiles)\.d/' | while IFS= read -r f; do cat "$R$f"; done
}

# After the last package of ours is gone; what another package has by now stays.
clear_aftermath() {
  [ -s "$S/aftermath" ] || return 0
  find_manager
  sort -ru "$S/aftermath" | while IFS=' ' read -r kind name uid gid path; do
    case $kind in
    path)
      name=${name}${uid:+ $uid}${gid:+ $gid}${path:+ $path}
      case $manager in dpkg) dpkg -S "$name" ;; rpm) rpm -qf "$name" ;; esac >/dev/null 2>&1 && continue
      if [ -d "$name" ] && [ ! -h "$name" ]; then rmdir "$name" 2>/dev/null; else rm -f "$name"; fi
      ;;
    passwd)
      grep -q "^$name:" "$R/etc/passwd" || continue
      group_id "$name" "$R/etc/group"
      quiet userdel "$name" || :
      grep -qxF -e "group $name" "$S/aftermath" || remake_group "$name" || :
      ;;
    group) ! grep -q "^$name:" "$R/etc/group" || quiet groupdel "$name" || : ;;
    looks)
      [ -d "$path" ] || mkdir "$path" 2>/dev/null || continue
      chown "$uid:$gid" "$path" 2>/dev/null && chmod "00$name" "$path" 2>/dev/null
      ;;
    esac
  done
  rm -f "$S/aftermath"
}

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

# What a transaction brought beside what was asked for belongs to it, also when it was cut off.
account() {
  [ -s "$S/transaction" ] || return 0
  look_packages
  t_owner=$owner
  IFS=' ' read -r _ owner <"$S/transaction"
  [ -n "${record_began:-}" ] || { begin_records 10000; record_began=1; }
  names=$(list_brought)
  for n in $names; do
    key=package-$(printf %s "$n" | tr .+ __)
    load "$key" || note "$key" package absent "$n" "$manager"
    brought="$brought $key"
  done
  # shellcheck disable=SC2086 # names of packages have no spaces
  note_earlier $names
  flush_records
  owner=$t_owner
  # shellcheck disable=SC2086
  note_surroundings $names
  rm -f "$S/transaction" "$S/surroundings" "$S/etc.list"
}

# image I KEY RUNTIME REFERENCES: an archive of images that came as I; references separated by spaces.
image() {
  case $phase in
  look)
    need=
    if present=$(list_images "$3"); then
      present=$nl$present$nl
      for ref in $4; do case $present in *"$nl$ref$nl"*) ;; *) need="${need:-absent} $ref" ;; esac; done
    else
      need=runtime-does-not-answer
    fi
    needs "$1" "$need"
    ;;
  want)
    needed "$1" || return 0
    [ -f "$T/f/$1" ] || { say "wanting $1"; wanting=1; }
    ;;
  record)
    if needed "$1"; then
      own "$2"
      case $need in absent*) load "$2" || note "$2" image absent "${need#absent }" "$3" ;; *) load "$2" || note "$2" image absent "$4" "$3" ;; esac
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    # While the runtime unpacks a layer its client hears nothing: a second for each mebibyte more.
    calm=$((patient + $(stat -c %s "$T/f/$1") / 1048576))
    case $3 in
    containerd) while_alive "$calm" ctr -n k8s.io images import "$T/f/$1" ;;
    docker) while_alive "$calm" docker load -i "$T/f/$1" ;;
    isulad) while_alive "$calm" isula load -i "$T/f/$1" ;;
    esac || fail "$1" "$3 does not take the images"
    present=$nl$(list_images "$3")$nl
    for ref in $4; do case $present in *"$nl$ref$nl"*) ;; *) fail "$1" "the archive does not bring $ref" ;; esac; done
    rm -f "$T/f/$1"
    done_deed "$1"
    ;;
  esac
}

# Without its socket `ctr` would try for ten seconds.
containerd_listens() {
  [ -S /run/containerd/containerd.sock ]
}

list_images() {
  case $1 in
  containerd) containerd_listens && ctr -n k8s.io images ls -q ;;
  docker) docker image ls --format '{{.Repository}}:{{.Tag}}' ;;
  isulad) isula images | sed '1d;s/^\([^ ]*\)  *\([^ ]*\) .*/\1:\2/' ;;
  esac 2>/dev/null </dev/null
}

# script I KEY NAME SECONDS CHECK DO UNDO: each a text for `sh -c`; CHECK succeeds when there is nothing to do.
script() {
  case $phase in
  look)
    need=
    within "$4" sh -c "$5" hatchery || need=undone
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        printf '%s\n' "$7" >"$S/record/$2.undo"
        news="$news $2.undo"
        note "$2" script undone "$3" "$4"
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  deed)
    needed "$1" || return 0
    begin_deed "$1"
    within "$4" sh -c "$6" hatchery || fail "$1"
    [ ! -s "$out" ] || say_text '' said "$1"
    done_deed "$1"
    ;;
  esac
}

# ---- a task -----------------------------------------------------------------------------------

# A line "SUM PATH" for each file of the list that can be read. Where there is openssl it takes a quarter of the time.
sums() {
  [ -n "$rehash" ] || return 0
  if command -v openssl >/dev/null; then
    eval "openssl dgst -sha256 -r $rehash" 2>/dev/null
  else
    eval "sha256sum $rehash" 2>/dev/null
  fi
}

next_sum() {
  IFS=' ' read -r sum sum_path <&3 || sum_path=
  sum_path=${sum_path#\*}
}

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
  [ -n "$looked" ] || fail 0 "the shell finds no room for temporary files"
  looked=
  phase=hash
  { next_sum; ops; looked=1; } 3<<SUMS
$(sums)
SUMS
  [ -n "$looked" ] || fail 0 "the shell finds no room for temporary files"
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
  look_around
  i=0
  while [ "$i" -lt "$count" ]; do
    if needed "$i"; then say "would $i $need"; else say "unchanged $i"; fi
    i=$((i + 1))
  done
  finish ok
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
  phase=deed
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

# ---- the way back ---------------------------------------------------------------------------

# release KEY@OWNER...: these owners no longer need these resources.
release() {
  undo "@ $*"
}

# undo OWNERS: what only they need goes back to what it was; `*` stands for everybody. Behind an `@` stand single resources of
# owners, as KEY@OWNER.
undo() {
  mode=undo
  trap '' HUP PIPE
  exec 4>/dev/null
  if [ ! -d "$S" ]; then
    sweep_scripts
    say "hatchery 1 $run"
    finish ok
  fi
  take_lock
  exec 4>"$S/report"
  say "hatchery 1 $run"
  catch_output
  claim old
  owner=unowned
  sweep
  chosen=
  for f in "$S"/record/*; do
    key=${f##*/}
    case $key in *.orig | *.is | *.text | *.list | *.pending | *.undo | *.zone | *.users | *@*) continue ;; esac
    [ -f "$f" ] || continue
    released "$key" "$1" || continue
    if load "$key" || [ "$l_mark" = end ]; then
      chosen="$chosen$l_seq $l_kind $key$nl"
    else
      forget "$key"
    fi
  done
  chosen=$(printf '%s' "$chosen" | sort -rn)
  # Units stop while their files are there, and start when these are what they were.
  stuck= stopping= disabling= forgotten=
  gather_packaged_units
  each unit gather_unit
  stop_units
  packages= later= gone= gathering=other
  case $chosen in *' package '*) purging=1 ;; *) purging= ;; esac
  each other restore
  remove_gathered
  remove_packages
  clear_leftovers
  restore_again
  put_earlier_back || stick "it is in $S/kept"
  case $reload,$chosen in *' package '* | *' unit '* | 1,*) within 60 systemctl daemon-reload || : ;; esac
  each unit restore_unit
  forget_put_back
  packages_left || clear_aftermath
  # Only without any record left is nothing of ours here.
  for f in "$S"/record/*; do
    case $f in *@* | *.orig | *.is | *.text | *.list | *.pending | *.undo | *.zone | *.users) ;; *) [ ! -f "$f" ] || { finish "${stuck:-ok}"; } ;; esac
  done
  if [ -z "$stuck" ]; then
    cd / && rm -rf "$S"
    finish ok
  fi
  finish "$stuck"
}

packages_left() {
  for f in "$S"/record/package-*; do [ ! -f "$f" ] || return 0; done
  return 1
}

# released KEY OWNERS: does nobody else need it? A name is a file, so a shell's pattern finds it.
released() {
  [ "$2" != '*' ] || return 0
  others= mine=
  for f in "$S/record/$1"@*; do
    [ -e "$f" ] || continue
    case "$2" in '@ '*) given=${f##*/} ;; *) given=${f##*@} ;; esac
    case " $2 " in *" $given "*) mine="$mine $f" ;; *) others=1 ;; esac
  done
  [ -n "$mine" ] || return 1
  [ -n "$others" ] || return 0
  # shellcheck disable=SC2086 # keys and owners have no spaces
  rm -f $mine
  return 1
}

# each unit|other FUNCTION: over what was chosen, the latest first.
each() {
  e_ifs=$IFS
  IFS=$nl
  set -f
  # No here-document: bash writes those to files, and there may be no room for one.
  for e_line in $chosen; do
    IFS=$e_ifs
    set +f
    e_key=${e_line##* } e_kind=${e_line#* }
    e_kind=${e_kind%% *}
    case $1,$e_kind in unit,unit) ;; unit,* | other,unit) continue ;; esac
    if load "$e_key"; then "$2" "$e_key"; elif [ "$l_mark" = end ]; then forget "$e_key"; fi
  done
  IFS=$e_ifs
  set +f
}

# A key can be the beginning of another, so everything that belongs to one is named in full.
forget() {
  set -- "$S/record/$1"
  rm -rf "$1" "$1.is" "$1.list" "$1.orig" "$1.pending" "$1.text" "$1.undo" "$1.users" "$1.zone" "$1"@*
}

# put_back KEY: to be forgotten with others. Whoever dies before that puts it back again, which changes nothing.
put_back() {
  forgotten="$forgotten $1"
  [ "${#forgotten}" -lt 2500 ] || forget_put_back
}

forget_put_back() {
  set --
  for key in $forgotten; do
    key=$S/record/$key
    set -- "$@" "$key" "$key.is" "$key.list" "$key.orig" "$key.pending" "$key.text" "$key.undo" "$key.users" "$key.zone" "$key"@*
  done
  forgotten=
  [ $# = 0 ] || rm -rf "$@"
}

# One thing that cannot be put back does not keep the others from it.
stick() {
  stuck=stuck
  say "left $l_kind $l_name"
  say_text "$*" why
}

restore() {
  r_key=$1
  : >"$out"
  gathered=other
  case $l_kind,$l_was in
  hosts_entry,*) gathered=hosts ;;
  # One that we made in its place goes first.
  file,absent | link,absent) [ ! -h "$R$l_name" ] && [ -d "$R$l_name" ] || gathered=files ;;
  esac
  # In their order, since what comes next may be the directory that they are in.
  [ "$gathered" = "$gathering" ] && [ "${#gone}" -lt 2500 ] || { remove_gathered && load "$1"; }
  gathering=$gathered
  [ "$gathering" = other ] || { gone="$gone $r_key"; return; }
  case $l_kind in
  file | link | absent) restore_path "$1" || { stick "cannot put $l_name back"; return; } ;;
  directory) restore_directory "$1" || return ;;
  sysctl) { [ ! -e "$R/proc/sys/$l_name" ] || printf '%s\n' "$l_extra" >"$R/proc/sys/$l_name"; } 2>"$out" || { stick; return; } ;;
  module) quiet modprobe -r "$l_name" || : ;;
  hosts) restore_hosts "$1" || { stick "cannot put /etc/hosts back"; return; } ;;
  kernel_hostname) { printf '%s\n' "$l_name" >"$R/proc/sys/kernel/hostname"; } 2>"$out" || { stick; return; } ;;
  firewall) restore_firewall "$1" || { stick "cannot close $l_name"; return; } ;;
  firewall_zone) restore_zone "$1" || { stick; return; } ;;
  user) restore_user "$1" || { stick "cannot remove the user $l_name"; return; } ;;
  package)
    # All at once, since they need each other.
    packages="$packages $1"
    return
    ;;
  image) restore_image || { stick; return; } ;;
  script)
    body=$(cat "$S/record/$1.undo")
    within "$l_extra" sh -c "$body" hatchery || { stick; return; }
    ;;
  *) stick "a record of an unknown kind; a newer Hatchery made it"; return ;;
  esac
  case $l_name in */systemd/*) reload=1 ;; esac
  say "undone $l_kind $l_name"
  case $purging,$l_kind,$l_was,$l_name,$l_extra in
  *,*-packaged\ *) ;;
  1,file,file,/etc/*)
    later="$later $r_key"
    return
    ;;
  esac
  # A script is the user's and has to run once.
  case $l_kind in script) forget "$r_key" ;; *) put_back "$r_key" ;; esac
}

# Files that were not there before, or lines of /etc/hosts, all at once.
remove_gathered() {
  [ -n "$gone" ] || return 0
  case $gathering in hosts) remove_hosts_entries ;; files) remove_files ;; esac
  gone=
}

remove_files() {
  set --
  for key in $gone; do ! load "$key" || set -- "$@" "$R$l_name" "$R${l_name%/*}/.hatchery-$key"; done
  rm -f "$@" 2>/dev/null
  for key in $gone; do
    load "$key" || continue
    if [ -e "$R$l_name" ] || [ -h "$R$l_name" ]; then
      rm -f "$R$l_name" 2>"$out" || { stick "cannot put $l_name back"; continue; }
    fi
    case $l_name in */systemd/*) reload=1 ;; esac
    say "undone $l_kind $l_name"
    put_back "$key"
  done
}

# A package that is purged takes its configuration with it, also where somebody had written it before the package came.
restore_again() {
  for r_key in $later; do
    ! load "$r_key" || [ -e "$R$l_name" ] || { restore_path "$r_key" && find_manager && drop_moved "$R$l_name"; } || { stick "cannot put $l_name back"; continue; }
    forget "$r_key"
  done
}

same_inode() {
  [ "$(stat -c %d:%i "$1" 2>/dev/null)" = "$(stat -c %d:%i "$2" 2>/dev/null)" ]
}

restore_path() {
  r_path=$R$l_name
  if [ ! -h "$r_path" ] && [ -d "$r_path" ]; then
    # One that we made in its place goes first; somebody else's is not removed.
    rmdir "$r_path" 2>"$out" || return
  fi
  rm -f "${r_path%/*}/.hatchery-$1" 2>/dev/null
  r_orig=$S/record/$1.orig
  # Not into a directory that a link names.
  [ ! -h "$r_path" ] || [ ! -d "$r_path" ] || [ "$l_was" = absent ] || same_inode "$r_orig" "$r_path" || rm -f "$r_path"
  case $l_was,$l_extra in
  absent,*) rm -f "$r_path" 2>"$out" ;;
  *,linked*)
    # Where nothing was put in its place, the original is still there under both names.
    ! same_inode "$r_orig" "$r_path" || return 0
    make_above "$r_path" 2>"$out" || return
    # Until packages are gone the original is needed a second time.
    [ -z "$purging" ] || { ln "$r_orig" "${r_path%/*}/.hatchery-$1" && mv -f "${r_path%/*}/.hatchery-$1" "$r_path"; } 2>"$out" || return
    [ -n "$purging" ] || mv -f "$r_orig" "$r_path" 2>"$out"
    ;;
  *)
    if mounted "$r_path"; then
      cat "$r_orig" >"$r_path" 2>"$out" && back_to_mode "$r_path" && touch -r "$r_orig" "$r_path"
    else
      make_above "$r_path" 2>"$out" && cp -a "$r_orig" "${r_path%/*}/.hatchery-$1" 2>"$out" && mv -f "${r_path%/*}/.hatchery-$1" "$r_path" 2>"$out"
    fi
    ;;
  esac
}

# make_above PATH: a package that goes takes its empty directories with it.
make_above() {
  [ -d "${1%/*}" ] || (umask 022 && mkdir -p "${1%/*}")
}

back_to_mode() {
  set -- "$1" "${l_extra#* }"
  # shellcheck disable=SC2086 # mode, owner and group
  set -- "$1" $2
  chown "$3:$4" "$1" 2>"$out" && chmod "00$2" "$1" 2>"$out"
}

list_entries() {
  for f in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$f" ] || [ -h "$f" ] || continue
    printf '%s\n' "${f##*/}"
  done
}

# A directory that was there before is emptied of what is ours and never removed.
restore_directory() {
  r_path=$R$l_name
  [ -d "$r_path" ] || { say "undone directory $l_name"; forget "$1"; return 1; }
  case $l_extra in
  ours*)
    ! mounted_below "$r_path" || { stick "unmount it first"; return 1; }
    theirs=
    [ ! -f "$S/record/$1.list" ] || theirs=$nl$(cat "$S/record/$1.list")$nl
    for f in "$r_path"/* "$r_path"/.[!.]* "$r_path"/..?*; do
      [ -e "$f" ] || [ -h "$f" ] || continue
      case $f in *"$nl"*) continue ;; esac
      case $theirs in *"$nl${f##*/}$nl"*) ;; *) set -- "$@" "$f" ;; esac
    done
    if [ $# -gt 1 ]; then (shift && rm -rf "$@" 2>"$out") || { stick "cannot empty $r_path"; return 1; }; fi
    ;;
  esac
  case $l_was in
  absent) rmdir "$r_path" 2>"$out" || { [ -d "$r_path" ] && { kept_directory "$1"; return 1; }; } ;;
  *) back_to_mode "$r_path" || { stick; return 1; } ;;
  esac
}

# Somebody else's files are in a directory that we made: it stays, and is theirs.
kept_directory() {
  say "kept directory $l_name"
  forget "$1"
}

# Our lines are in a file that we put there, never behind a link.
remove_hosts_entries() {
  lines=
  for key in $gone; do ! load "$key" || lines="$lines${lines:+$nl}$l_name"; done
  if [ -f "$R/etc/hosts" ] && [ ! -h "$R/etc/hosts" ]; then without_lines "$lines"; fi
  left=$?
  for key in $gone; do
    load "$key" || continue
    [ "$left" = 0 ] || { stick "cannot write /etc/hosts"; continue; }
    say "undone $l_kind $l_name"
    put_back "$key"
  done
}

without_lines() {
  grep -vxF -e "$1" "$R/etc/hosts" >"$S/hosts.new" 2>"$out"
  [ $? -le 1 ] || return 1
  ! cmp -s "$S/hosts.new" "$R/etc/hosts" || return 0
  chown --reference="$R/etc/hosts" "$S/hosts.new" 2>/dev/null || chown "$(stat -c %U:%G "$R/etc/hosts")" "$S/hosts.new"
  chmod "$(stat -c %a "$R/etc/hosts")" "$S/hosts.new"
  if mounted "$R/etc/hosts"; then
    cat "$S/hosts.new" >"$R/etc/hosts" 2>"$out"
  else
    mv -f "$S/hosts.new" "$R/etc/.hatchery-hosts" 2>"$out" && mv -f "$R/etc/.hatchery-hosts" "$R/etc/hosts" 2>"$out" && relabel "$R/etc/hosts"
  fi
}

# When only our lines had been added, the original comes back with its times; otherwise what others wrote stays.
restore_hosts() {
  rm -f "$R/etc/.hatchery-hosts" "$R/etc/.hatchery-$1"
  if [ "$l_was" = absent ]; then
    [ -s "$R/etc/hosts" ] || rm -f "$R/etc/hosts" 2>"$out"
    return
  fi
  text=$S/record/$1.orig
  if [ "$l_was" = link ]; then
    # It was never replaced, or somebody else's is there.
    [ ! -h "$R/etc/hosts" ] || return 0
    text=$S/record/$1.text
  fi
  # Who compares need not read to the end.
  [ ! -f "$R/etc/hosts" ] || cmp -s "$text" "$R/etc/hosts" || { cat "$text"; echo; } 2>/dev/null | cmp -s - "$R/etc/hosts" || return 0
  restore_path "$1"
}

restore_firewall() {
  case $l_was in
  firewalld)
    zone=
    reopen_ports && list_walls || return
    # Zone by zone, each with what was done in it.
    for w in $l_extra; do
      case $w,$l_name in
      now,*/tcp | now,*/udp | kept,*/tcp | kept,*/udp) close_port "$w" "$zone" "$1" || return ;;
      now,* | kept,*) in_zone "$w" "$zone" --remove-source="$l_name" || return ;;
      now:* | kept:*) ;;
      *) zone=$w ;;
      esac
    done
    ;;
  ufw)
    # It may be gone, and with a comment it is somebody else's by now: ufw has one rule for both and deletes either.
    ufw_name "$l_name"
    case "$nl$(ufw show added 2>/dev/null </dev/null 9>&-)$nl" in *"${nl}ufw allow $ufw_name$nl"*) within 60 ufw delete allow "$ufw_name" ;; esac
    ;;
  esac
}

# in_zone now|kept ZONE OPTION: what somebody has taken out before us is out.
in_zone() {
  case $1,$runs in
  now,1) within 60 firewall-cmd --zone="$2" "$3" ;;
  kept,1) within 60 firewall-cmd --permanent --zone="$2" "$3" ;;
  kept,) ! command -v firewall-offline-cmd >/dev/null || within 60 firewall-offline-cmd --zone="$2" "$3" ;;
  esac || grep -q 'INVALID_ZONE\|UNKNOWN_SOURCE\|NOT_ENABLED\|ALREADY_ENABLED\|ZONE_CONFLICT' "$out"
}

# What is open now and for good, once for all records.
list_walls() {
  [ -z "${walls:-}" ] || return 0
  wall_now= wall_kept= runs=
  if firewalld_runs; then
    runs=1
    wall_now=$(firewall-cmd --list-all-zones 2>"$out" </dev/null) && wall_kept=$(firewall-cmd --permanent --list-all-zones 2>"$out" </dev/null) || return
  elif command -v firewall-offline-cmd >/dev/null; then
    wall_kept=$(firewall-offline-cmd --list-all-zones 2>"$out" </dev/null) || return
  fi
  wall_now=$nl$(printf '%s\n' "$wall_now" | zone_entries)$nl wall_kept=$nl$(printf '%s\n' "$wall_kept" | zone_entries)$nl
  walls=1
}

# close_port now|kept ZONE KEY: firewalld has made one range of ours and of what overlapped it. That is closed, and what
# others had of it, and other records of ours, are opened again. A range that is wider than all these together is
# somebody else's by now and stays as it is.
close_port() {
  eval "entries=\$wall_$1"
  list_own_ports "$2" "$3"
  again= z=
  for w in $l_extra; do
    case $w in now | kept) ;; now:* | kept:*) [ "$z ${w%%:*}" != "$2 $1" ] || again="$again ${w#*:}" ;; *) z=$w ;; esac
  done
  bounds "$l_name"
  first=$low last=$high from=$low to=$high words=
  for p in $again $own_ports; do
    bounds "$p"
    [ "${p#*/}" = "${l_name#*/}" ] && [ "$low" -le "$last" ] && [ "$high" -ge "$first" ] || continue
    # One that somebody has closed since stays closed.
    find_overlaps "$entries" "$2" "$p"
    [ -n "$covering" ] || continue
    bounds "$p"
    [ "$low" -ge "$from" ] || from=$low
    [ "$high" -le "$to" ] || to=$high
    words="$words${words:+$nl}$1 $2 $p"
  done
  find_overlaps "$entries" "$2" "$l_name"
  # Without `walls` they are listed again: what is there then is firewalld's choice.
  case " $overlaps " in *" $l_name "*) overlaps=$l_name ;; *) walls= ;; esac
  [ -z "$words" ] || { walls=; set_durably reopen "$words" || return; }
  for p in $overlaps; do
    bounds "$p"
    [ "$low" -ge "$from" ] && [ "$high" -le "$to" ] || continue
    in_zone "$1" "$2" --remove-port="$p" || return
    [ -z "$walls" ] || eval "wall_$1=\${entries%%\"\$nl\$2 \$l_name\$nl\"*}\$nl\${entries#*\"\$nl\$2 \$l_name\$nl\"}"
  done
  reopen_ports
}

# Also for a run that died between the two.
reopen_ports() {
  [ -s "$S/reopen" ] || return 0
  runs=
  ! firewalld_runs || runs=1
  while IFS=' ' read -r way z p; do in_zone "$way" "$z" --add-port="$p" || return; done <"$S/reopen"
  rm -f "$S/reopen"
}

# The zones' files come back when the zones are what they were, so that not even a copy of them remains.
restore_zone() {
  kept=$S/record/$1.zone
  for zone in $l_name; do
    list=$kept/$zone.list
    # Where only one zone could be written down.
    [ -f "$list" ] || list=$kept/list
    now=$(list_zone "$zone") && [ "$(printf '%s\n' "$now" | sort_ports)" = "$(sort_ports <"$list")" ] || continue
    for f in "$zone.xml" "$zone.xml.old"; do
      if [ -f "$kept/$f" ]; then cp -a "$kept/$f" "$R/etc/firewalld/zones/$f" 2>"$out" || return; else rm -f "$R/etc/firewalld/zones/$f" 2>"$out" || return; fi
    done
  done
}

# In which order firewalld tells them depends on when they were added.
sort_ports() {
  set -f
  while IFS= read -r line; do
    case $line in '  ports: '*) for p in ${line#*: }; do printf 'port %s\n' "$p"; done | sort ;; *) printf '%s\n' "$line" ;; esac
  done
}

# restore_user KEY: only what we made of the two. The lists come back as they were when nobody else changed them.
restore_user() {
  kept=$S/record/$1.users remade=
  case $l_extra in
  *user*) ! has_account passwd "$l_name" || if command -v userdel >/dev/null; then within 60 userdel "$l_name"; else within 60 deluser "$l_name"; fi || return ;;
  esac
  case $l_extra in
  *group*) ! has_account group "$l_name" || if command -v groupdel >/dev/null; then within 60 groupdel "$l_name"; else within 60 delgroup "$l_name"; fi || return ;;
  *) group_id "$l_name" "$kept/group" && remake_group "$l_name" || return ;;
  esac
  for f in passwd group shadow gshadow; do
    same_list "$kept/$f" "$R/etc/$f" || continue
    for g in "$f" "$f-"; do
      if [ ! -f "$kept/$g" ]; then
        rm -f "$R/etc/$g"
      elif ! same_inode "$kept/$g" "$R/etc/$g"; then
        rm -f "$R/etc/.hatchery-$g"
        { ln "$kept/$g" "$R/etc/.hatchery-$g" 2>/dev/null || cp -a "$kept/$g" "$R/etc/.hatchery-$g"; } && mv -f "$R/etc/.hatchery-$g" "$R/etc/$g" || return
      fi
    done
  done 2>"$out"
  [ -f "$kept/.pwd.lock" ] || rm -f "$R/etc/.pwd.lock"
}

# group_id NAME FILE: its number, or nothing.
group_id() {
  gid=$(sed -n "s/^$1:[^:]*:\([0-9]*\):.*/\1/p" "$2" 2>/dev/null) || gid=
}

# remake_group NAME: many machines remove a user's group with the user, also one that was there before.
remake_group() {
  [ -n "$gid" ] && ! has_account group "$1" || return 0
  remade=1
  if command -v groupadd >/dev/null; then within 60 groupadd -g "$gid" "$1"; else within 60 addgroup -g "$gid" "$1"; fi
}

# same_list KEPT NOW: a group that was made again stands at the end.
same_list() {
  ! cmp -s "$1" "$2" || return 0
  case $remade,$1 in 1,*/group | 1,*/gshadow) ;; *) return 1 ;; esac
  [ -f "$1" ] && [ -f "$2" ] && [ "$(grep -v "^$l_name:" "$1" | sort)" = "$(grep -v "^$l_name:" "$2" | sort)" ]
}

restore_image() {
  for ref in $l_name; do
    case $l_extra in
    containerd) ! containerd_listens || ctr -n k8s.io images rm "$ref" ;;
    docker) docker image rm "$ref" ;;
    isulad) isula rmi "$ref" ;;
    esac >/dev/null 2>&1 </dev/null 9>&- || :
  done
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

gather_unit() {
  case " $stopping " in *" $l_name "*) return ;; esac
  case $packaged_units,${l_extra#* } in
  # An older release took it for somebody else's when the package had started it.
  *"$nl$l_name$nl"*) disabling="$disabling $l_name" ;;
  *,active | *,activating | *,reloading) return ;;
  esac
  stopping="$stopping $l_name"
  case $l_extra in disabled* | absent*) disabling="$disabling $l_name" ;; esac
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

# Together: each may have clients to say goodbye to, and systemd knows which has to wait for which.
stop_units() {
  [ -n "$stopping" ] || return 0
  set -f
  # shellcheck disable=SC2086 # names of units have no spaces
  within "$patient" systemctl stop $stopping || for name in $stopping; do within "$patient" systemctl stop "$name" || :; done
  # shellcheck disable=SC2086
  [ -z "$disabling" ] || quiet systemctl disable --no-reload $disabling || for name in $disabling; do quiet systemctl disable --no-reload "$name" || :; done
  set +f
}

restore_unit() {
  : >"$out"
  was_file=${l_extra%% *} was_active=${l_extra#* }
  # Its file went with a package: there is nothing to enable or to start.
  case $was_file,$was_active in
  enabled*,* | *,active | *,activating | *,reloading)
    case $nl$(systemctl show -p LoadState "$l_name" 2>/dev/null </dev/null 9>&-)$nl in
    *"${nl}LoadState=not-found$nl"*) was_file=absent was_active=inactive ;;
    esac
    ;;
  esac
  case $was_file in
  enabled*) within "$patient" systemctl enable "$l_name" || { stick; return; } ;;
  disabled) quiet systemctl disable "$l_name" || : ;;
  esac
  case $was_active in
  active | reloading) within "$patient" systemctl restart "$l_name" || { stick "cannot start $l_name"; return; } ;;
  # It was not up then either.
  activating) quiet systemctl restart --no-block "$l_name" || : ;;
  *) quiet systemctl reset-failed "$l_name" || : ;;
  esac
  say "undone unit $l_name"
  put_back "$1"
}

# ---- questions --------------------------------------------------------------------------------

# outcome: of a run that lost its connection; waits until it has ended.
outcome() {
  mode=outcome
  if [ ! -d "$S" ]; then echo gone; exit 0; fi
  exec 9>>"$S/lock"
  if ! flock -w "$patience" 9; then
    IFS=' ' read -r h_run _ <"$S/holder" || h_run=
    printf 'running %s\n' "${h_run:-?}"
    exit 0
  fi
  exec 4>/dev/null
  await_child >/dev/null
  if [ -f "$S/report" ] && IFS=' ' read -r _ _ r_run <"$S/report" && [ "$r_run" = "$run" ]; then
    echo report
    cat "$S/report"
  else
    echo none
  fi
}

# managed: everything in the record, for facts. However many files there are, each question is one process.
#   KIND STATE SIZE PUT KEY OWNERS NAME   a dash where there is nothing to tell; a name has no line breaks
#   |LINE                                 a line of the certificate that the line before is about
managed() {
  [ -d "$S/record" ] || return 0
  [ ! -f "$S/cluster" ] || { IFS= read -r line <"$S/cluster" && printf 'cluster %s\n' "$line"; }
  count=0 paths= units=
  for f in "$S"/record/*; do
    key=${f##*/}
    case $key in *.orig | *.is | *.text | *.list | *.pending | *.undo | *.zone | *.users | *@*) continue ;; esac
    load "$key" || continue
    owners=
    for o in "$f"@*; do [ ! -e "$o" ] || owners="$owners,${o##*@}"; done
    count=$((count + 1))
    eval "key_$count=\$key kind_$count=\$l_kind name_$count=\$l_name owners_$count=\${owners#,}"
    case $l_kind in
    file) paths="$paths \"\$R\$name_$count\"" ;;
    unit) units="$units \"\$name_$count\"" ;;
    esac
  done
  # Pipes: a here-document needs room on the disk.
  { [ -z "$units" ] || eval "systemctl show -p UnitFileState -p ActiveState $units" 2>/dev/null </dev/null; } | {
    { [ -z "$paths" ] || eval "stat -c '$form' $paths" 2>/dev/null; } | managed_files 3<&0
  } 5<&0
}

# What `stat` says of each file, and the sums of those that are no longer what we put there.
managed_files() {
  i=0 rehash=
  next
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    eval "kind=\$kind_$i name=\$name_$i key=\$key_$i"
    [ "$kind" = file ] || continue
    state=absent size=- is=
    [ ! -f "$S/record/$key.is" ] || IFS= read -r is <"$S/record/$key.is"
    put=${is%% *}
    if [ "$st_n" = "$R$name" ]; then
      case $st_f in
      8???)
        size=$st_s state=$put
        if [ "${is#* }" != "$st_s $st_day $st_time $st_zone $st_i" ]; then
          state=unknown
          rehash="$rehash \"\$R\$name_$i\""
        fi
        ;;
      esac
      next
    fi
    eval "state_$i=\$state size_$i=\$size put_$i=\${put:--}"
  done
  sums | managed_lines 3<&0
}

managed_lines() {
  i=0
  next_sum
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    eval "kind=\$kind_$i name=\$name_$i owners=\$owners_$i key=\$key_$i"
    state=- size=- put=-
    case $kind in
    file)
      eval "state=\$state_$i size=\$size_$i put=\$put_$i"
      if [ "$sum_path" = "$R$name" ]; then
        state=$sum
        next_sum
      elif [ "$state" = unknown ]; then
        state=absent size=-
      fi
      ;;
    unit) unit_state "$name"; state=$u_active,$u_file ;;
    esac
    printf '%s %s %s %s %s %s %s\n' "$kind" "$state" "$size" "$put" "$key" "$owners" "$name"
    case $kind,$size,$name in file,-,*) ;; file,*.crt) [ "$size" -gt 16384 ] || certificate "$R$name" "$size" ;; esac
  done
}

# certificate PATH SIZE: its lines, when every byte of it is the text of certificates and none of a private key.
certificate() {
  text= length=0
  while IFS= read -r line; do
    case $line in *[!\ -~]*) return ;; esac
    text="$text|$line$nl" length=$((length + ${#line} + 1))
  done 2>/dev/null <"$1"
  [ "$length" = "$2" ] || return 0
  case $text in *'PRIVATE KEY'*) ;; *"|-----BEGIN CERTIFICATE-----$nl"*) printf %s "$text" ;; esac
}
