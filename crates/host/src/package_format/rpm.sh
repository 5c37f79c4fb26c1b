# shellcheck shell=sh disable=SC2034,SC2154
# Packages of rpm.

# Each installed package as "name version".
rpm_installed() {
  rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' 2>/dev/null
}

rpm_traces() {
  rpm -qa --qf '%{NAME}\n' 2>/dev/null
}

rpm_has() {
  rpm -q "$1" >/dev/null 2>&1
}

rpm_has_trace() {
  rpm_has "$1"
}

rpm_before() {
  echo absent
}

rpm_name_of() {
  rpm -qp --qf '%{NAME}' "$1"
}

rpm_files_of() {
  rpm -qlp "$1"
}

rpm_files() {
  rpm -ql "$@"
}

rpm_has_file() {
  rpm -qf "$1"
}

rpm_configuration() {
  rpm -qc "$@" 2>/dev/null | sed -n 's|^/||p'
}

# rpm_is_as_brought PATH NAME: sets p to the package of the file when it says what that brought.
rpm_is_as_brought() {
  p=$(rpm -qf --qf '%{NAME}\n' "$2" 2>/dev/null) || return
  p=${p%%"$nl"*}
  # A file that the package names but does not contain has no sum.
  case $nl$(rpm -q --qf '[%{FILEDIGESTS} %{FILENAMES}\n]' "$p" 2>/dev/null)$nl in *"$nl $2$nl"*) return 1 ;; esac
  case $(rpm -V --nodeps --noscripts "$p" 2>/dev/null)$nl in *" $2$nl"*) return 1 ;; esac
}

# Where packages name what they make beside their files.
rpm_scripts() {
  rpm -q --scripts "$@"
  rpm -ql "$@" | grep '^/var/'
}

rpm_install() {
  bring rpm -U --replacepkgs "$@" && return
  grep -q 'Failed dependencies' "$out" && bring rpm -U --replacepkgs --nodeps "$@"
}

rpm_purge() {
  when_free rpm -e "$@"
}

rpm_purge_check() {
  rpm -e --test "$1"
}

rpm_is_locked_out() {
  grep -qi 'transaction lock\|database lock' "$out"
}

# Something is installed already: what is locked then is something that a package's script wants, such as rpm's database.
rpm_is_at_work() {
  grep -q scriptlet "$out"
}

# In the words of dnf for a transaction of rpm that did not get to its end.
rpm_has_begun() {
  grep -qi 'transaction failed\|scriptlet' "$out"
}

# rpm_clear_beside PATH: what rpm has beside a file that it is unpacking.
rpm_clear_beside() {
  for f in "$1;"????????; do [ ! -f "$f" ] || rm -f "$f"; done
}

# rpm_stay_with_earlier PATH: rpm moves such a file aside, or puts its own beside it. As with dpkg, what was there stays alone.
rpm_stay_with_earlier() {
  ! came_beside "$1.rpmorig" || mv -f "$R/$1.rpmorig" "$R/$1" 2>/dev/null
  ! came_beside "$1.rpmnew" || rm -f "$R/$1.rpmnew" 2>/dev/null
}

came_beside() {
  [ -f "$R/$1" ] && ! grep -qxF -e "$1" "$S/etc.list" && ! rpm -qf "/$1" >/dev/null 2>&1
}

# rpm_drop_moved PATH: what rpm moved away when it erased a package, when the same is at its place again.
rpm_drop_moved() {
  [ ! -f "$1.rpmsave" ] || ! cmp -s "$1" "$1.rpmsave" || rm -f "$1.rpmsave"
}

# rpm_plan NAMES: what comes with them is told only afterwards, by the number of the transaction.
rpm_plan() {
  plan=$(printf '@ %s\n' "$@")
}

# rpm_came_with NAMES: of what is new, $new, what came in the transactions that brought these.
rpm_came_with() {
  ids=$(rpm -q --whatprovides --qf '%{NAME} %{INSTALLTID}\n' "$@" 2>/dev/null | while IFS=' ' read -r n id; do
    case $nl$new$nl in *"$nl$n$nl"*) printf ' %s ' "$id" ;; esac
  done)
  [ -n "$ids" ] || { id=$(likely_id) && ids=${id:+ $id }; }
  rpm -qa --qf '%{NAME} %{INSTALLTID}\n' 2>/dev/null | while IFS=' ' read -r n id; do
    case $ids in *" $id "*) printf '%s\n' "$n" ;; esac
  done
}

# Which of rpm's transactions was ours, where nothing came of what it was asked for but some of what that needs. Others may
# have had theirs while dnf downloaded, which came before ours, and after a run of ours was cut off.
likely_id() {
  ids=$(rpm -qa --qf '%{NAME} %{INSTALLTID}\n' 2>/dev/null | while IFS=' ' read -r n id; do
    # A key of a repository comes by itself.
    case $n,$id in gpg-pubkey,* | *,*[!0-9]*) continue ;; esac
    case $nl$new$nl in *"$nl$n$nl"*) printf '%s\n' "$id" ;; esac
  done | sort -n)
  if [ "$phase" = change ]; then
    [ -z "$transacted" ] || printf %s "${ids##*"$nl"}"
    return
  fi
  id=${ids%%"$nl"*} booted=$(sed -n 's/^btime //p' "$R/proc/stat" 2>/dev/null)
  # It is a time. What came after the machine started again was not brought by what ended with that.
  [ -z "$booted" ] || [ "$(stat -c %Y "$S/transaction")" -ge "$booted" ] || [ "${id:-0}" -lt "$booted" ] || return 0
  printf %s "$id"
}

# rpm_offered PROGRAM NAMES: dnf and yum look into what they have fetched before; where that tells nothing they fetch it into a
# place of its own, which goes again.
rpm_offered() {
  program=$1
  shift
  said=$("$program" -q -C list "$@" 2>/dev/null) && [ -n "$said" ] || {
    place=$(mktemp -d) || return
    trap 'rm -rf "$place"' EXIT
    said=$("$program" -q --setopt=cachedir="$place" list "$@" 2>/dev/null)
  }
  printf '%s\n' "$said"
}

# What other formats have beside these, and rpm does not.
rpm_complete() { :; }
rpm_is_held() { false; }
rpm_forbid_starts() { :; }
