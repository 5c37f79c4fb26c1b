# Everything on a machine that a later user could notice, in sections that snapshot/parse.rs reads. Run by bash as root.
# Nothing is left out here but the kernel's own views (/proc and /sys, of which sections below show what can be left
# behind): what may differ stands in snapshot/exceptions.rs, each with its reason.
set -e
files() { find / \( -path /proc -o -path /sys \) -prune -o "$@"; }
section() { printf '== %s\n' "$*"; }

# A process may end while its files are listed.
section file
files -printf '%y\t%m\t%U:%G\t%s\t%T@\t%p\t%l\n' 2>/dev/null || true
# Whole lines, since two write at the same time.
section sum
files -type f -print0 2>/dev/null | xargs -0 -P 2 -n 200 stdbuf -oL sha256sum 2>/dev/null || true

section unit-file
systemctl list-unit-files --no-legend --no-pager | tr -s ' '
section unit
systemctl list-units --all --no-legend --no-pager --plain | awk '{print $1, $2, $3}'
section service
systemctl show theirs.service -p ExecStart -p ActiveState | sed 's/start_time.*//'
section package
{ dpkg-query -W -f '${Package} ${Version} ${Status}\n' 2>/dev/null || rpm -qa; } | sort
section user
getent passwd
section group
getent group

section sysctl
sysctl -a 2>/dev/null | grep -E '^(net\.ipv[46]\.(ip_forward|conf\.(all|default|lo)|ip_local|tcp_)|net\.core\.somaxconn|kernel\.hostname|net\.unix)' | grep -v 'stable_secret\|tcp_mem\|fin_timeout_x\|tcp_fastopen_key'
section module
ls /sys/module
section mount
cut -d ' ' -f 2,3 /proc/self/mounts
section process
ps ax -o comm=
section control-group
find /sys/fs/cgroup -type d | sort

# Both back ends have tables of their own; the short name is one of them.
for family in iptables ip6tables; do
  for back_end in legacy nft; do
    ! command -v "$family-$back_end-save" >/dev/null || { section "chain $family-$back_end"; "$family-$back_end-save" 2>/dev/null; }
  done
done
section nft
! command -v nft >/dev/null || nft -s list ruleset 2>/dev/null
section ipset
! command -v ipset >/dev/null || ipset save
section ipvs
[ ! -r /proc/net/ip_vs ] || awk '{ print $1, $2, $3, $4 }' /proc/net/ip_vs
section network-namespace
ip netns list | awk '{ print $1 }'
section link
ip -o -d link show | sed 's/^[0-9]*: //'
section address
ip -o address show | awk '{ print $2, $3, $4 }'
for family in 4 6; do
  section "route $family"
  ip "-$family" route show table all
  section "rule $family"
  ip "-$family" rule show
done
section end
