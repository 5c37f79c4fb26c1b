# shellcheck shell=sh disable=SC2034,SC2154
# Files put where they belong, and originals put back there.

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

# copy_file FROM TO: the very inode where possible.
copy_file() {
  rm -f "$2" && { ln "$1" "$2" 2>/dev/null || cp -a "$1" "$2"; }
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
