# shellcheck shell=sh disable=SC2034,SC2154
# Settings and modules of the kernel.

# sysctl I KEY NAME PATH VALUE: VALUE with single spaces.
sysctl() {
  case $phase in
  look)
    need=
    if read_value "$R/proc/sys/$4"; then [ "$value" = "$5" ] || need="value $value"; else need=absent; fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      load "$2" || { read_value "$R/proc/sys/$4" && note "$2" sysctl there "$4" "$value"; }
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    if ! load "$2"; then
      # Its module was loaded by this very task: only now there is a value to keep.
      read_value "$R/proc/sys/$4" || fail "$1" "the kernel has no $3; is its module loaded?"
      note "$2" sysctl there "$4" "$value"
      flush_records
    fi
    { printf '%s\n' "$5" >"$R/proc/sys/$4"; } 2>"$out" || fail "$1" "cannot set $3 to $5"
    end_change "$1"
    ;;
  esac
}

# The words of a file. The kernel gives the whole of a number only to who asks for more than
# one byte at a time, which `read` of dash and ash does not.
read_value() {
  value=
  [ -r "$1" ] && value=$(cat "$1" 2>/dev/null) || return 1
  set -f
  # shellcheck disable=SC2086 # this is what joins the words
  set -- $value
  set +f
  value=$*
}

# module I KEY NAME
module() {
  case $phase in
  look)
    need=
    has_module "$3" || need=absent
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      load "$2" || note "$2" module absent "$3" -
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    within 60 modprobe "$3" || fail "$1" "the kernel has no module $3"
    end_change "$1"
    ;;
  esac
}

# Loaded, or part of the kernel; some built-in ones show only in what they bring.
has_module() {
  [ ! -d "$R/sys/module/$1" ] || return 0
  case $1 in
  br_netfilter) [ -d "$R/proc/sys/net/bridge" ] && return ;;
  overlay) grep -q '	overlay$' "$R/proc/filesystems" 2>/dev/null && return ;;
  nf_conntrack) [ -e "$R/proc/sys/net/netfilter/nf_conntrack_max" ] && return ;;
  esac
  IFS= read -r release 2>/dev/null </proc/sys/kernel/osrelease || release=
  grep -q "/$1\.ko" "$R/lib/modules/$release/modules.builtin" 2>/dev/null
}
