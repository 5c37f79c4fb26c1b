# shellcheck shell=sh disable=SC2034,SC2154
# What one run of the package manager is to bring, and what it brought.

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
