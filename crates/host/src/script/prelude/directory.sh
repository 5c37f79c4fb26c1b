# shellcheck shell=sh disable=SC2034,SC2154
# Directories.

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
  change)
    needed "$1" || return 0
    begin_change "$1"
    [ -d "$R$3" ] || mkdir -m 755 "$R$3" 2>"$out" || fail "$1" "cannot make $R$3"
    end_change "$1"
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
  change)
    needed "$1" || return 0
    begin_change "$1"
    [ -d "$R$3" ] || mkdir "$R$3" 2>"$out" || fail "$1" "cannot make $R$3"
    chown "$6:$7" "$R$3" 2>"$out" && chmod "00$5" "$R$3" 2>"$out" || fail "$1" "cannot set owner and mode of $R$3"
    end_change "$1"
    ;;
  esac
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
