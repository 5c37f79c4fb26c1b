# shellcheck shell=sh
# The first tunnel of its kind belongs to its module and goes with it. Others' tunnels would go with it too.
calico_link_stays() {
  [ "$1" = tunl0 ] && [ "$(ip -o link show type ipip 2>/dev/null | grep -c .)" = 1 ] || return 0
  { ip address flush dev tunl0; ip link set tunl0 down; modprobe -r ipip; } 2>/dev/null
}
calico_end() {
  # One that was there before has only got an address.
  ip -o address show dev tunl0 2>/dev/null | awk '{ print $4 }' | while IFS= read -r address; do
    ! new "address tunl0 $address" || ip address delete "$address" dev tunl0 2>/dev/null
  done
  # Those of bird's number are another bird's while one runs.
  bird=
  for comm in /proc/[0-9]*/comm; do
    IFS= read -r name 2>/dev/null <"$comm" || continue
    case $name in bird | bird6) bird=1 ;; esac
  done
  calico_routes | while read -r version protocol route; do
    new "route $version $protocol $route" && [ "$bird$protocol" != 112 ] || continue
    # shellcheck disable=SC2086 # the words of the route
    ip "-$version" route delete $route proto "$protocol" 2>/dev/null
  done
  calico_rules | while read -r version rule; do
    # shellcheck disable=SC2086 # the words of the rule
    ! new "rule $version $rule" || ip "-$version" rule delete priority 99 $rule 2>/dev/null
  done
}
