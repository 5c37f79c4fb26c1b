# shellcheck shell=sh
# calico_routes: those of calico's own number, and those of the bird that it brings. `ip` tells no number it was asked for.
calico_routes() {
  for version in 4 6; do
    for protocol in 80 12; do
      ip "-$version" route show table all proto "$protocol" 2>/dev/null |
        sed "s/ linkdown//;s/ dead//;s/ offload//;s/ *$//;s/^/$version $protocol /"
    done
  done
}
# The rule by which calico keeps what WireGuard has encrypted from going through it again.
calico_rules() {
  for version in 4 6; do
    ip "-$version" rule show 2>/dev/null | sed -n "s/^99:[[:space:]]*\(not from all fwmark 0x[0-9a-fx/]* lookup [0-9]*\) *$/$version \1/p"
  done
}
calico_before() {
  ip -o address show dev tunl0 2>/dev/null | awk '{ print "address tunl0", $4 }'
  calico_routes | sed 's/^/route /'
  calico_rules | sed 's/^/rule /'
}
