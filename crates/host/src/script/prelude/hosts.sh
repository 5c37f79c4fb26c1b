# shellcheck shell=sh disable=SC2034,SC2154
# Lines of /etc/hosts.

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
  change)
    needed "$1" || return 0
    begin_change "$1"
    if [ -z "$hosts_own" ]; then
      # Another inode than the original, which is kept.
      cp -p "$R/etc/hosts" "$T/hosts" 2>/dev/null || { : >"$T/hosts" && chmod 644 "$T/hosts"; }
      [ ! -s "$T/hosts" ] || [ -z "$(tail -c 1 "$T/hosts")" ] || echo >>"$T/hosts"
      eval "device=\${dev_$5:-?}"
      put "$1" "$T/hosts" "$R/etc/hosts" "$4" "$device"
      hosts_own=1
    fi
    { printf '%s\n' "$3" >>"$R/etc/hosts"; } 2>"$out" || fail "$1" "cannot write /etc/hosts"
    end_change "$1"
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
