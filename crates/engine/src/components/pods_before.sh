# shellcheck shell=sh
# around: what of the network is there, a line each. What was there before a cluster is nobody's but its owner's.
variants() {
  for family in iptables ip6tables; do
    known=
    for v in "$family-legacy" "$family-nft" "$family"; do
      # The short name is mostly one of the others.
      at=$(command -v "$v-save") && real=$(readlink -f "$at") || continue
      case " $known " in *" $real "*) continue ;; esac
      known="$known $real"
      echo "$v"
    done
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
