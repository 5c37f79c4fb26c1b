# shellcheck shell=sh
# around: what of the network is there, a line each. What was there before a cluster is nobody's but its owner's.
variants() {
  for v in iptables-legacy iptables-nft iptables ip6tables-legacy ip6tables-nft ip6tables; do
    ! command -v "$v-save" >/dev/null || echo "$v"
  done
}
around() {
  for v in $(variants); do
    "$v-save" 2>/dev/null | awk -v v="$v" '/^\*/ { t = substr($1, 2) } /^:/ { print "chain", v, t, substr($1, 2) }'
  done
  nft list tables 2>/dev/null | awk '{ print "nft-table", $2, $3 }'
  nft list chains 2>/dev/null | awk '$1 == "table" { t = $2 " " $3 } $1 == "chain" { print "nft-chain", t, $2 }'
  ip -o link show 2>/dev/null | awk '{ n = $2; sub(/[@:].*/, "", n); print "link", n }'
  for n in /run/netns/* /run/docker/netns/*; do [ ! -e "$n" ] || echo "netns $n"; done
  ipvsadm -Sn 2>/dev/null | awk '$1 == "-A" { print "ipvs", $2, $3 }'
}
