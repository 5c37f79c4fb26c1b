# shellcheck shell=sh disable=SC2034,SC2154
# Zones of firewalld: what is in them, what is added, and what they were.

firewalld_runs() {
  [ "$(firewall-cmd --state 2>/dev/null </dev/null)" = running ]
}

# A line for each thing in a zone: "ZONE 6443/tcp", "ZONE from:10.0.0.0/8", "ZONE at:eth0", "ZONE target:default".
zone_entries() {
  while IFS= read -r line; do
    case $line in
    '  ports: '*) set_entries '' "${line#*: }" ;;
    '  sources: '*) set_entries from: "${line#*: }" ;;
    '  interfaces: '*) set_entries at: "${line#*: }" ;;
    '  target: '*) set_entries target: "${line#*: }" ;;
    ' '* | '	'* | '') ;;
    *) entries_of=${line%% *} ;;
    esac
  done
}

set_entries() {
  set -f
  for entry in $2; do printf '%s %s%s\n' "$entries_of" "$1" "$entry"; done
  set +f
}

# port_zones ADDRESS: the zones that packets to this machine's address come in by: that of its interface, otherwise the default
# one, and those that were made for networks of senders, unless they turn everything away. A zone that takes everything needs no port.
port_zones() {
  [ -z "${wall_zones+x}" ] || return 0
  device=
  [ "$1" = - ] || device=$(ip -o addr show to "$1" 2>/dev/null | { read -r _ device _ && printf %s "${device%%@*}"; })
  zone=
  [ -z "$device" ] || zone=$(printf %s "$wall_now" | sed -n "s/ at:$device\$//p" | head -n 1)
  [ -n "$zone" ] || zone=$(firewall-cmd --get-default-zone 2>/dev/null </dev/null)
  candidates=$zone
  for z in $(printf %s "$wall_now" | sed -n 's/ from:.*//p' | sort -u); do
    case $wall_now in *"$nl$z target:default$nl"*) [ "$z" = "$zone" ] || candidates="$candidates $z" ;; esac
  done
  wall_zones=
  for z in $candidates; do
    case $wall_now in *"$nl$z target:ACCEPT$nl"*) ;; *) wall_zones="$wall_zones $z" ;; esac
  done
}

# wall_has ENTRIES ZONE ENTRY: a network can be in one zone only, and who put it into another has decided. A port may be
# part of a range.
wall_has() {
  overlaps=
  case $3 in from:*) case $1 in *" $3$nl"*) return 0 ;; *) return 1 ;; esac ;; esac
  find_overlaps "$1" "$2" "$3"
  [ -n "$covering" ]
}

# find_overlaps ENTRIES ZONE PORTS: which ports of the zone have some of these, and which has all.
find_overlaps() {
  overlaps= covering= o_ifs=$IFS
  bounds "$3"
  set -- "$1" "$2" "$3" "$low" "$high"
  IFS=$nl
  set -f
  for o_line in $1; do
    case $o_line in "$2 "[0-9]*"/${3#*/}") ;; *) continue ;; esac
    bounds "${o_line#* }"
    [ "$low" -le "$5" ] && [ "$high" -ge "$4" ] || continue
    overlaps="$overlaps ${o_line#* }"
    [ "$low" -gt "$4" ] || [ "$high" -lt "$5" ] || covering=${o_line#* }
  done
  set +f
  IFS=$o_ifs
}

# bounds PORTS: the first and the last of "2379/tcp" or "30000-32767/tcp".
bounds() {
  high=${1%/*}
  low=${high%-*} high=${high#*-}
}

# list_own_ports ZONE [KEY]: what other records than KEY say that we opened there.
list_own_ports() {
  own_ports=
  for f in "$S"/record/*; do
    case ${f##*/} in *.* | *@*) continue ;; esac
    case " $forgotten ${2:-} " in *" ${f##*/} "*) continue ;; esac
    { IFS=' ' read -r o_kind _ o_was; IFS= read -r o_name; IFS= read -r o_extra; } 2>/dev/null <"$f" || continue
    case "$o_kind $o_was, $o_extra " in "firewall firewalld,"*" $1 "*) own_ports="$own_ports $o_name" ;; esac
  done
}

# wall_need ENTRY ZONES
wall_need() {
  need=
  for z in $2; do
    if ! wall_has "$wall_now" "$z" "$1"; then
      need=closed
    elif ! wall_has "$wall_kept" "$z" "$1"; then
      need=${need:-not-permanent}
    fi
  done
}

# wall_record I KEY BASE ENTRY ZONES: in which zones it is going to be added, and what the files of these are.
wall_record() {
  how=
  for z in $5; do
    h=
    for way in now kept; do
      eval "entries=\$wall_$way"
      ! wall_has "$entries" "$z" "$4" || continue
      h="$h $way"
      # firewalld makes one range of ours and of others that have a part of it.
      [ -z "$overlaps" ] || list_own_ports "$z"
      for p in $overlaps; do case " $own_ports " in *" $p "*) ;; *) h="$h $way:$p" ;; esac; done
    done
    [ -n "$h" ] || continue
    how="$how $z$h"
    keep_zone "$1" "$3" "$z"
  done
  own "$2"
  own "$3"
  if ! load "$2"; then
    note "$2" firewall firewalld "${4#from:}" "${how# }"
    return
  fi
  # A zone that came into use since then.
  extra=$l_extra adding=
  for h in $how; do
    case $h in
    now | kept | now:* | kept:*) [ -z "$adding" ] || extra="$extra $h" ;;
    *) case " $extra " in *" $h "*) adding= ;; *) adding=1 extra="$extra $h" ;; esac ;;
    esac
  done
  [ "$extra" = "$l_extra" ] || amend "$1" "$2" "$l_name" "$extra"
}

# wall_add I KIND VALUE ENTRY ZONES
wall_add() {
  for z in $5; do
    wall_has "$wall_now" "$z" "$4" || within 60 firewall-cmd --zone="$z" --add-"$2=$3" || fail "$1" "firewalld did not add $3 to its zone $z"
    wall_has "$wall_kept" "$z" "$4" || within 60 firewall-cmd --permanent --zone="$z" --add-"$2=$3" || fail "$1" "firewalld did not add $3 to its zone $z permanently"
  done
}

# keep_zone I KEY ZONE: firewalld writes a zone's file when something is added for good, and leaves it there.
keep_zone() {
  zones=
  if load "$2"; then
    case " $l_name " in *" $3 "*) return 0 ;; esac
    zones=$l_name
  else
    rm -rf "$S/record/$2.zone"
  fi
  [ -d "$S/record/$2.zone" ] || mkdir "$S/record/$2.zone" || fail "$1" "cannot keep firewalld's zone"
  for f in "$3.xml" "$3.xml.old"; do
    [ ! -f "$R/etc/firewalld/zones/$f" ] || cp -a "$R/etc/firewalld/zones/$f" "$S/record/$2.zone/" || fail "$1" "cannot keep firewalld's zone"
    [ ! -f "$S/record/$2.zone/$f" ] || news="$news $2.zone/$f"
  done
  list_zone "$3" >"$S/record/$2.zone/$3.list"
  news="$news $2.zone/$3.list"
  if [ -z "$zones" ]; then note "$2" firewall_zone there "$3" -; else amend "$1" "$2" "$zones $3" -; fi
}

list_zone() {
  if firewalld_runs; then
    firewall-cmd --permanent --zone="$1" --list-all 2>/dev/null </dev/null
  else
    firewall-offline-cmd --zone="$1" --list-all 2>/dev/null </dev/null
  fi
}

# in_zone now|kept ZONE OPTION: what somebody has taken out before us is out.
in_zone() {
  case $1,$runs in
  now,1) within 60 firewall-cmd --zone="$2" "$3" ;;
  kept,1) within 60 firewall-cmd --permanent --zone="$2" "$3" ;;
  kept,) ! command -v firewall-offline-cmd >/dev/null || within 60 firewall-offline-cmd --zone="$2" "$3" ;;
  esac || grep -q 'INVALID_ZONE\|UNKNOWN_SOURCE\|NOT_ENABLED\|ALREADY_ENABLED\|ZONE_CONFLICT' "$out"
}

# What is open now and for good, once for all records.
list_walls() {
  [ -z "${walls:-}" ] || return 0
  wall_now= wall_kept= runs=
  if firewalld_runs; then
    runs=1
    wall_now=$(firewall-cmd --list-all-zones 2>"$out" </dev/null) && wall_kept=$(firewall-cmd --permanent --list-all-zones 2>"$out" </dev/null) || return
  elif command -v firewall-offline-cmd >/dev/null; then
    wall_kept=$(firewall-offline-cmd --list-all-zones 2>"$out" </dev/null) || return
  fi
  wall_now=$nl$(printf '%s\n' "$wall_now" | zone_entries)$nl wall_kept=$nl$(printf '%s\n' "$wall_kept" | zone_entries)$nl
  walls=1
}

# close_port now|kept ZONE KEY: firewalld has made one range of ours and of what overlapped it. That is closed, and what
# others had of it, and other records of ours, are opened again. A range that is wider than all these together is
# somebody else's by now and stays as it is.
close_port() {
  eval "entries=\$wall_$1"
  list_own_ports "$2" "$3"
  again= z=
  for w in $l_extra; do
    case $w in now | kept) ;; now:* | kept:*) [ "$z ${w%%:*}" != "$2 $1" ] || again="$again ${w#*:}" ;; *) z=$w ;; esac
  done
  bounds "$l_name"
  first=$low last=$high from=$low to=$high words=
  for p in $again $own_ports; do
    bounds "$p"
    [ "${p#*/}" = "${l_name#*/}" ] && [ "$low" -le "$last" ] && [ "$high" -ge "$first" ] || continue
    # One that somebody has closed since stays closed.
    find_overlaps "$entries" "$2" "$p"
    [ -n "$covering" ] || continue
    bounds "$p"
    [ "$low" -ge "$from" ] || from=$low
    [ "$high" -le "$to" ] || to=$high
    words="$words${words:+$nl}$1 $2 $p"
  done
  find_overlaps "$entries" "$2" "$l_name"
  # Without `walls` they are listed again: what is there then is firewalld's choice.
  case " $overlaps " in *" $l_name "*) overlaps=$l_name ;; *) walls= ;; esac
  [ -z "$words" ] || { walls=; set_durably reopen "$words" || return; }
  for p in $overlaps; do
    bounds "$p"
    [ "$low" -ge "$from" ] && [ "$high" -le "$to" ] || continue
    in_zone "$1" "$2" --remove-port="$p" || return
    [ -z "$walls" ] || eval "wall_$1=\${entries%%\"\$nl\$2 \$l_name\$nl\"*}\$nl\${entries#*\"\$nl\$2 \$l_name\$nl\"}"
  done
  reopen_ports
}

# Also for a run that died between the two.
reopen_ports() {
  [ -s "$S/reopen" ] || return 0
  runs=
  ! firewalld_runs || runs=1
  while IFS=' ' read -r way z p; do in_zone "$way" "$z" --add-port="$p" || return; done <"$S/reopen"
  rm -f "$S/reopen"
}

# The zones' files come back when the zones are what they were, so that not even a copy of them remains.
restore_zone() {
  kept=$S/record/$1.zone
  for zone in $l_name; do
    list=$kept/$zone.list
    # Where only one zone could be written down.
    [ -f "$list" ] || list=$kept/list
    now=$(list_zone "$zone") && [ "$(printf '%s\n' "$now" | sort_ports)" = "$(sort_ports <"$list")" ] || continue
    for f in "$zone.xml" "$zone.xml.old"; do
      if [ -f "$kept/$f" ]; then cp -a "$kept/$f" "$R/etc/firewalld/zones/$f" 2>"$out" || return; else rm -f "$R/etc/firewalld/zones/$f" 2>"$out" || return; fi
    done
  done
}

# In which order firewalld tells them depends on when they were added.
sort_ports() {
  set -f
  while IFS= read -r line; do
    case $line in '  ports: '*) for p in ${line#*: }; do printf 'port %s\n' "$p"; done | sort ;; *) printf '%s\n' "$line" ;; esac
  done
}
