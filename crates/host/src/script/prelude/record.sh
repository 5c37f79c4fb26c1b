# shellcheck shell=sh disable=SC2034,SC2154
# The record: what was there first, written down before it is changed.

# set_durably NAME LINE: a file of $S that is the old or the new one after a power cut, and never empty.
set_durably() {
  printf '%s\n' "$2" >"$S/$1.new" 2>"$out" && flush "$S/$1.new" && mv -f "$S/$1.new" "$S/$1" 2>"$out" && flush "$S"
}

# Where `sync` takes no names it writes everything.
flush() {
  sync "$@" 2>/dev/null || sync
}

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
