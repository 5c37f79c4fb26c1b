# shellcheck shell=sh disable=SC2034,SC2154
# Packages: what is installed, and what is installed together.

# came_with_package PATH NAME: is it the configuration that a package of ours brought, and as that brought it? One that
# was there before the package is somebody's own, also when it says the same.
came_with_package() {
  case $2 in /etc/*) packages_left || return ;; *) return 1 ;; esac
  [ -f "$1" ] && [ ! -h "$1" ] || return
  ! grep -qxF -e "${2#/}" "$S/earlier" 2>/dev/null || return
  find_manager
  [ -n "$format" ] && per_format is_as_brought "$@" || return
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
      # Somebody else's package is left at its version; ours gets the requested one.
      [ "$5" = '*' ] || [ ! -f "$S/record/$2" ] || need=version
      ;;
    *) need=absent ;;
    esac
    [ -n "$format" ] || need=no-package-manager
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
      [ -n "$format" ] || fail "$1" "neither dpkg nor rpm is installed"
      own "$2"
      if ! load "$2"; then
        note "$2" package "$(per_format before "$3")" "$3" "$format"
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    eval "batch=\$batch_$4 done_batch=\${did_batch_$4:-}"
    begin_change "$1"
    if [ -z "$done_batch" ]; then
      eval "tried=\"\$tried \$keys_$4\""
      per_format forbid_starts "$1"
      # shellcheck disable=SC2086 # names of packages and numbers have no spaces
      install_packages "$1" "$6" $batch
      allow_starts
      eval "disown_others \$keys_$4"
      packaged=1
      eval "did_batch_$4=1"
    fi
    per_format has "$3" || fail "$1" "$3 is still not installed; the package that was installed has another name"
    end_change "$1"
    ;;
  esac
}

look_packages() {
  [ -z "${installed+x}" ] || return 0
  find_manager
  installed=$(per_format installed | sort -u)
}

# What keeps the packages of the machine, and what brings them from repositories: the first of each that is there.
find_manager() {
  [ -z "${format+x}" ] || return 0
  format= manager=
  for kind in $package_formats; do
    ! command -v "${kind#*:}" >/dev/null || { format=${kind%%:*}; break; }
  done
  for kind in $package_managers; do
    case $kind in *":$format:"*) ! command -v "${kind##*:}" >/dev/null || { manager=${kind%%:*}; break; } ;; esac
  done
}

# per_format VERB ARGUMENTS: how the machine's format of packages does it. Where there is none there is nothing to do.
per_format() {
  [ -n "$format" ] || return 0
  verb=$1
  shift
  "${format}_$verb" "$@"
}

# per_manager VERB ARGUMENTS: how what brings packages from repositories does it.
per_manager() {
  [ -n "$manager" ] || return 1
  verb=$1
  shift
  "${manager}_$verb" "$@"
}

# A busy package manager is waited for, with a deadline. A transaction begins anew before the next try: whoever was busy
# may have brought packages.
when_free() {
  busy_since=
  while ! while_alive "$step_timeout" "$@"; do
    is_locked_out || return 1
    while :; do
      uptime_now
      busy_since=${busy_since:-$now}
      [ "$((now - busy_since))" -lt "$step_timeout" ] || { echo "the package manager was busy for $step_timeout s" >>"$out"; return 1; }
      sleep 1
      per_format is_held || break
    done
    [ -z "$transaction" ] || begin_transaction || return
  done
}

# Was another's lock in its way from the beginning?
is_locked_out() {
  { per_format is_locked_out || per_manager is_locked_out; } && ! per_format is_at_work
}

# install_packages I FROM WORDS: names, or the numbers of the files that came.
install_packages() {
  set_aside=$1 source=$2
  shift 2
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
  case $source in files) cd "$T/f" || fail "$set_aside" "the files are gone" ;; esac
  per_format complete
  asked=$*
  case $source in
  repo) per_manager install "$@" && return ;;
  files) per_format install "$@" && cd / && return ;;
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
