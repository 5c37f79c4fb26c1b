# shellcheck shell=sh disable=SC2034,SC2154
# Packages: what is installed, and what is installed together.

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
