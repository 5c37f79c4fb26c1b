# shellcheck shell=sh disable=SC2034,SC2154
# Users and groups of the system.

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
  change)
    needed "$1" || return 0
    begin_change "$1"
    shell=/bin/false
    for f in /sbin/nologin /usr/sbin/nologin; do [ ! -x "$f" ] || shell=$f; done
    if command -v useradd >/dev/null; then
      has_account group "$3" || within 60 groupadd -r "$3" || fail "$1" "cannot make the group $3"
      has_account passwd "$3" || within 60 useradd -r -M -g "$3" -d "$4" -s "$shell" "$3" || fail "$1" "cannot make the user $3"
    else
      has_account group "$3" || within 60 addgroup -S "$3" || fail "$1" "cannot make the group $3"
      has_account passwd "$3" || within 60 adduser -S -D -H -G "$3" -h "$4" -s "$shell" "$3" || fail "$1" "cannot make the user $3"
    fi
    end_change "$1"
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
