# shellcheck shell=sh disable=SC2034,SC2154
# Ports that are opened and networks that are trusted, in firewalld and ufw.

# firewall I KEY PORT PROTOCOL BASE ADDRESS: ADDRESS is where others reach this machine, or a dash.
firewall() {
  case $phase in
  look)
    look_firewall
    need=
    case $wall in
    firewalld) port_zones "$6"; wall_need "$3/$4" "$wall_zones" ;;
    ufw)
      ufw_name "$3/$4"
      case "$nl$wall_kept$nl" in *"${nl}ufw allow $ufw_name$nl"* | *"${nl}ufw allow $ufw_name comment '"*) ;; *) need=closed ;; esac
      ;;
    esac
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      case $wall in
      firewalld) wall_record "$1" "$2" "$5" "$3/$4" "$wall_zones" ;;
      *) own "$2"; load "$2" || note "$2" firewall "$wall" "$3/$4" "- ufw" ;;
      esac
    elif load "$2"; then
      own "$2"
      own "$5"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    case $wall in
    firewalld) wall_add "$1" port "$3/$4" "$3/$4" "$wall_zones" ;;
    ufw) ufw_name "$3/$4"; within 60 ufw allow "$ufw_name" || fail "$1" "ufw did not open $3/$4" ;;
    esac
    end_change "$1"
    ;;
  esac
}

# trusted_network I KEY NETWORK BASE: firewalld takes whatever comes from there. ufw lets packets pass that others accept.
trusted_network() {
  case $phase in
  look)
    look_firewall
    need=
    [ "$wall" != firewalld ] || wall_need "from:$3" trusted
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      wall_record "$1" "$2" "$4" "from:$3" trusted
    elif load "$2"; then
      own "$2"
      own "$4"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    wall_add "$1" source "$3" "from:$3" trusted
    end_change "$1"
    ;;
  esac
}

# A range is written with a colon there.
ufw_name() {
  ufw_name=$1
  case $1 in *-*) ufw_name=${1%%-*}:${1#*-} ;; esac
}

look_firewall() {
  [ -z "${wall+x}" ] || return 0
  wall=none wall_now= wall_kept=
  if firewalld_runs; then
    wall=firewalld
    wall_now=$nl$(firewall-cmd --list-all-zones 2>/dev/null </dev/null | zone_entries)$nl
    wall_kept=$nl$(firewall-cmd --permanent --list-all-zones 2>/dev/null </dev/null | zone_entries)$nl
  elif case "$(ufw status 2>/dev/null </dev/null)" in "Status: active"*) true ;; *) false ;; esac; then
    wall=ufw
    wall_kept=$(ufw show added 2>/dev/null)
  fi
}

restore_firewall() {
  case $l_was in
  firewalld)
    zone=
    reopen_ports && list_walls || return
    # Zone by zone, each with what was done in it.
    for w in $l_extra; do
      case $w,$l_name in
      now,*/tcp | now,*/udp | kept,*/tcp | kept,*/udp) close_port "$w" "$zone" "$1" || return ;;
      now,* | kept,*) in_zone "$w" "$zone" --remove-source="$l_name" || return ;;
      now:* | kept:*) ;;
      *) zone=$w ;;
      esac
    done
    ;;
  ufw)
    # It may be gone, and with a comment it is somebody else's by now: ufw has one rule for both and deletes either.
    ufw_name "$l_name"
    case "$nl$(ufw show added 2>/dev/null </dev/null 9>&-)$nl" in *"${nl}ufw allow $ufw_name$nl"*) within 60 ufw delete allow "$ufw_name" ;; esac
    ;;
  esac
}
