# shellcheck shell=sh disable=SC2034,SC2154
# Packages of dpkg.

# Each installed package as "name version".
deb_installed() {
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' 2>/dev/null | sed -n 's/^installed //p'
}

# The names of those too that an interrupted dpkg left half way: their files are there.
deb_traces() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n '/^not-installed /d;/^config-files /d;s/^[^ ]* //p'
}

deb_has() {
  [ "$(deb_status "$1")" = installed ]
}

deb_status() {
  dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null
}

# A package that dpkg was cut off in has left files too.
deb_has_trace() {
  case $(deb_status "$1") in
  '' | not-installed) return 1 ;;
  config-files) case " $modest " in *" $1 "*) return 1 ;; esac ;;
  esac
}

# What was there of it before: of one that had been removed, its configuration.
deb_before() {
  if [ "$(deb_status "$1")" = config-files ]; then echo config-files; else echo absent; fi
}

deb_name_of() {
  dpkg-deb -f "$1" Package
}

deb_files_of() {
  dpkg-deb --fsys-tarfile "$1" | tar -t | sed 's|^\./|/|;s|/$||'
}

deb_files() {
  dpkg -L "$@"
}

deb_has_file() {
  dpkg -S "$1"
}

deb_configuration() {
  dpkg-query -W -f '${Conffiles}\n' "$@" 2>/dev/null | sed -n 's|^ /\([^ ]*\) .*|\1|p'
}

# deb_is_as_brought PATH NAME: sets p to the package of the file when it says what that brought.
deb_is_as_brought() {
  p=$(dpkg-query -S "$2" 2>/dev/null) || return
  p=${p%%[:,]*} sum=$(md5sum <"$1")
  sum=${sum%% *}
  case $nl$(dpkg-query -W -f '${Conffiles}\n' "$p" 2>/dev/null)$nl$(dpkg-query --control-show "$p" md5sums 2>/dev/null)$nl in
  *"$nl $2 $sum$nl"* | *"$nl $2 $sum "* | *"$nl$sum  ${2#/}$nl"*) ;;
  *) return 1 ;;
  esac
}

# Where packages name what they make beside their files.
deb_scripts() {
  for n; do for f in "$R/var/lib/dpkg/info/$n".* "$R/var/lib/dpkg/info/$n":*.*; do [ ! -f "$f" ] || cat "$f"; done; done
}

# Packages that an interrupted dpkg left half way. No others come with that.
deb_complete() {
  [ -n "$(dpkg --audit 2>/dev/null)" ] || return 0
  asked=
  bring dpkg --configure -a || :
}

deb_install() {
  bring dpkg --force-confold -i "$@" && return
  grep -q 'dependency problems\|pre-dependency' "$out" && echo "installed although dependencies are missing" >"$out.note" &&
    bring dpkg --force-confold --force-depends -i "$@"
}

# deb_purge NAMES: of those in $modest the configuration stays.
deb_purge() {
  export DEBIAN_FRONTEND=noninteractive
  removed= purged=
  for p; do case " $modest " in *" $p "*) removed="$removed $p" ;; *) purged="$purged $p" ;; esac; done
  # shellcheck disable=SC2086 # names of packages have no spaces
  [ -z "$removed" ] || when_free dpkg --force-remove-reinstreq --remove $removed || return
  # shellcheck disable=SC2086
  [ -z "$purged" ] || when_free dpkg --force-remove-reinstreq --purge $purged
}

deb_purge_check() {
  dpkg --simulate --purge "$1"
}

deb_is_locked_out() {
  grep -qi 'could not get lock\|frontend lock\|is locked by another\|status database area' "$out"
}

# Something is installed already: what is locked then is something that a package's script wants, such as debconf's database.
deb_is_at_work() {
  grep -q '^Unpacking \|^Setting up ' "$out"
}

# Where apt says which process has its lock: has it still?
deb_is_held() {
  holder=$(sed -n 's/.*held by process \([0-9]*\).*/\1/p' "$out" | head -n 1)
  [ -n "$holder" ] && grep -q "POSIX .* $holder " /proc/locks 2>/dev/null
}

# deb_clear_beside PATH: what dpkg has beside a file that it is unpacking. A configuration file gets its name only when its
# package is complete.
deb_clear_beside() {
  [ ! -e "$1.dpkg-tmp" ] || mv -f "$1.dpkg-tmp" "$1"
  rm -f "$1.dpkg-new"
}

# No service comes up because its package is installed: it would run as nobody asked for. Debian's packages ask this
# file before they start anything. It forbids nothing to those whom others install, nor to services that ran before.
deb_forbid_starts() {
  [ -d "$R/usr/sbin" ] || return 0
  keep "$1" policy file "$R/usr/sbin/policy-rc.d" /usr/sbin/policy-rc.d
  flush_records
  # shellcheck disable=SC2016 # the words of another script
  printf '%s\n' '#!/bin/sh' ': Placed by Hatchery while it installs packages, and taken away afterwards.' "before='$S/record/policy.orig'" \
    '[ ! -x "$before" ] || "$before" "$@" || exit' '[ -n "${HATCHERY_RUNNING:-}" ] || exit 0' '[ "$1" != --quiet ] || shift' \
    'case $2 in *stop*) exit 0 ;; esac' 'case $HATCHERY_RUNNING in *" $1 "* | *" $1.service "*) exit 0 ;; esac' 'exit 101' >"$T/policy" &&
    chmod 755 "$T/policy" || fail "$1" "cannot write to $T"
  put "$1" "$T/policy" "$R/usr/sbin/policy-rc.d" policy '?'
  # Only what packages start: every container is a scope and some mounts.
  HATCHERY_RUNNING=$(systemctl list-units --plain --no-legend --no-pager --type=service,socket,timer,path --state=active,activating,reloading \
    2>/dev/null </dev/null 9>&- | while IFS=' ' read -r unit _; do printf ' %s' "$unit"; done)
  HATCHERY_RUNNING="$HATCHERY_RUNNING "
}

# What other formats have beside these, and dpkg does not.
deb_came_with() { :; }
deb_has_begun() { false; }
deb_stay_with_earlier() { :; }
deb_drop_moved() { :; }
