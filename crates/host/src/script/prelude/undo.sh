# shellcheck shell=sh disable=SC2034,SC2154
# The way back.

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
  image) restore_image "$1" || { stick; return; } ;;
  script)
    body=$(cat "$S/record/$1.undo")
    within "$l_extra" sh -c "$body" hatchery || { stick; return; }
    ;;
  *) stick "a record of an unknown kind, written by a newer Hatchery"; return ;;
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
