# shellcheck shell=sh disable=SC2034,SC2154
# What one run of the package manager is to bring, and what it brought.

# bring COMMAND...: one run of the package manager, and the transaction around it.
bring() {
  begin_transaction || fail "$set_aside" "cannot list the packages that are there"
  transaction=1
  when_free "$@"
  set -- $?
  transaction= transacted=
  [ "$1" = 0 ] || is_locked_out || ! per_format has_begun || transacted=1
  account
  return "$1"
}

# A transaction that was cut off has left files that its package manager does not know of. Their names are taken from
# the archives, which are still there.
strewn() {
  [ -s "$S/transaction" ] || return 0
  look_packages
  : >"$S/leftovers.new"
  [ ! -f "$S/leftovers" ] || cat "$S/leftovers" >"$S/leftovers.new"
  for f in "$S"/in/*/f/* $(per_manager fetched); do
    [ -f "$f" ] && n=$(per_format name_of "$f" 2>/dev/null) || continue
    [ -n "$n" ] && ! grep -qxF -e "$n" "$S/transaction" && is_planned "$n" && ! per_format has "$n" || continue
    per_format files_of "$f" >>"$S/leftovers.new" 2>/dev/null
  done
  mv -f "$S/leftovers.new" "$S/leftovers"
}

# After the packages themselves are gone.
clear_leftovers() {
  [ -s "$S/leftovers" ] || return 0
  find_manager
  sort -ru "$S/leftovers" | while IFS= read -r p; do
    case $p in /?*) p=$R$p ;; *) continue ;; esac
    per_format clear_beside "$p"
    case $p in "$R"/etc/*) [ -d "$p" ] || continue ;; esac
    [ -e "$p" ] || [ -h "$p" ] || continue
    per_format has_file "$p" >/dev/null 2>&1 && continue
    if [ -d "$p" ] && [ ! -h "$p" ]; then rmdir "$p" 2>/dev/null; else rm -f "$p"; fi
  done
  rm -f "$S/leftovers"
}

# What is going to be installed, and what is there before: packages, what their scripts may add beside their files, and
# files below /etc. The lists come last, right before the package manager takes its lock.
begin_transaction() {
  list_plan
  list_users_and_directories >"$S/surroundings" 2>/dev/null || return
  (cd "$R/" && find etc -xdev -type f) >"$S/etc.list" 2>/dev/null
  flush "$S/surroundings" "$S/etc.list"
  { echo ": $owner"; per_format traces | sort -u; [ -z "$plan" ] || printf '%s\n' "$plan"; } >"$S/transaction.new" && flush "$S/transaction.new" && mv -f "$S/transaction.new" "$S/transaction"
}

# The plan, in lines after the names of what is there: "+" says that there is one, "+ NAME" is a package that is to come,
# "@ NAME" one that comes with others of the same rpm transaction.
list_plan() {
  plan=
  # shellcheck disable=SC2086 # names of packages and numbers have no spaces
  case $asked,$source in
  ,*) ;;
  *,files)
    plan=$(for f in $asked; do n=$(per_format name_of "$f") && printf '+ %s\n' "$n" || exit 1; done 2>/dev/null) || { plan=; return; }
    ;;
  *,repo) per_manager plan $asked || : ;;
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
  new=$(per_format traces | sort -u | grep -vxF -f "$S/transaction") || return 0
  grep -qxF + "$S/transaction" || { printf '%s\n' "$new"; return; }
  planned=$(sed -n 's/^+ //p' "$S/transaction")
  names=$(sed -n 's/^@ //p' "$S/transaction")
  # shellcheck disable=SC2086 # names of packages have no spaces
  [ -z "$names" ] || planned=$planned$nl$(per_format came_with $names)
  printf '%s\n' "$new" | grep -xF -e "$planned"
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
    load "$key" || note "$key" package absent "$n" "$format"
    brought="$brought $key"
  done
  # shellcheck disable=SC2086 # names of packages have no spaces
  note_earlier $names
  flush_records
  owner=$t_owner
  # shellcheck disable=SC2086
  note_script_effects $names
  rm -f "$S/transaction" "$S/surroundings" "$S/etc.list"
}
