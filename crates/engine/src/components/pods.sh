# Ends all that the container runtime and the network left running, when a machine leaves its cluster.
# Runs as root under `sh`, may run again at any time, and touches nothing that is not of pods.
# $mark names the file with the packet filter's chains of before; `chains` lists those of now.
set -u
for unit in kubelet kube-proxy; do systemctl stop "$unit.service" 2>/dev/null; done
if command -v docker >/dev/null && systemctl -q is-active docker.service 2>/dev/null; then
  ids=$(docker ps -aq --filter label=io.kubernetes.pod.namespace 2>/dev/null)
  # shellcheck disable=SC2086 # ids have no spaces
  [ -z "$ids" ] || docker rm -f -v $ids >/dev/null 2>&1
fi

# Shims of the namespace of Kubernetes, and what runs below them.
shims() {
  for d in /proc/[0-9]*; do
    # By its name first: the text of this script is in a command line too.
    IFS= read -r comm 2>/dev/null <"$d/comm" || continue
    case $comm in containerd-shim*) ;; *) continue ;; esac
    case $(tr '\000' ' ' 2>/dev/null <"$d/cmdline") in *"-namespace k8s.io "*) echo "${d#/proc/}" ;; esac
  done
}
below() {
  for d in /proc/[0-9]*; do
    IFS= read -r line 2>/dev/null <"$d/stat" || continue
    line=${line##*) }
    # shellcheck disable=SC2086 # the fields of the line
    set -- "$1" $line
    [ "$3" != "$1" ] || { echo "${d#/proc/}"; below "${d#/proc/}"; }
  done
}
found=$(shims)
if [ -n "$found" ]; then
  systemctl stop containerd.service 2>/dev/null
  children=
  for shim in $found; do children="$children $(below "$shim")"; done
  # shellcheck disable=SC2086 # numbers
  kill -9 $found $children 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    alive=
    for pid in $found $children; do
      IFS= read -r line 2>/dev/null <"/proc/$pid/stat" || continue
      case ${line##*) } in Z* | X*) ;; *) alive=1 ;; esac
    done
    [ -n "$alive" ] || break
    sleep 0.2
  done
fi

# Mounts of pods, the innermost first.
cut -d ' ' -f 2 /proc/self/mounts | grep -E '^(/var/lib/kubelet/|/run/containerd/|/run/netns/cni-|/var/run/netns/cni-|/run/docker/netns/)' |
  sort -r | while IFS= read -r at; do umount -l "$(printf '%b' "$at")" 2>/dev/null; done
rm -f /run/netns/cni-* 2>/dev/null
rm -rf /run/flannel /run/containerd/io.containerd.runtime.v2.task/k8s.io /run/containerd/io.containerd.grpc.v1.cri /run/containerd/io.containerd.sandbox.controller.v1.shim 2>/dev/null
rmdir /run/netns 2>/dev/null

# Control groups of pods, empty by now, the innermost first.
for top in /sys/fs/cgroup /sys/fs/cgroup/*; do
  for group in kubepods kubepods.slice; do
    [ ! -d "$top/$group" ] || find "$top/$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
done

# Devices of the network plugins.
for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0 nodelocaldns tunl0@NONE vxlan.calico; do
  ip link show "$link" >/dev/null 2>&1 && ip link delete "$link" 2>/dev/null
done
ip -o link show 2>/dev/null | sed -n 's/^[0-9]*: \(veth[0-9a-f]*\|cali[0-9a-f]*\)@.*/\1/p' | while IFS= read -r link; do
  # A pair whose other end is gone, or was in a pod's namespace.
  case $(ip -d link show "$link" 2>/dev/null) in *link-netnsid* | *NO-CARRIER* | *cni0*) ip link delete "$link" 2>/dev/null ;; esac
done

# Rules of kube-proxy and of the plugins: theirs alone, in one transaction for each family.
ours='KUBE-|FLANNEL-|CNI-|cali[-:]|cali-'
for family in iptables ip6tables; do
  command -v "$family-save" >/dev/null || continue
  for variant in "$family-legacy" "$family-nft" "$family"; do
    command -v "$variant-save" >/dev/null || continue
    saved=$("$variant-save" 2>/dev/null) || continue
    printf '%s\n' "$saved" | grep -qE "$ours|flanneld|kubernetes" || continue
    printf '%s\n' "$saved" | awk -v ours="$ours" '
      /^\*/ { table = $0; print; next }
      /^:/ { name = substr($1, 2); if (name ~ "^(" ours ")") { chains[++n] = name } next }
      /^-A/ { if ($2 !~ "^(" ours ")" && $0 ~ "(-j (" ours ")|flanneld|--comment \"?(kubernetes|cali:))") { sub(/^-A/, "-D"); print } next }
      /^COMMIT/ { for (i = 1; i <= n; i++) print "-F " chains[i]; for (i = 1; i <= n; i++) print "-X " chains[i]; n = 0; print }
    ' | "$variant-restore" --noflush 2>/dev/null
  done
done
if command -v nft >/dev/null; then
  for family in ip ip6; do nft list table $family kube-proxy >/dev/null 2>&1 && nft delete table $family kube-proxy; done
fi
# Chains and tables that came with the cluster and hold nothing now.
chains | grep -vxF -f "$mark" 2>/dev/null | while read -r family table chain; do
  nft delete chain "$family" "$table" "$chain" 2>/dev/null
done
nft list tables 2>/dev/null | while read -r _ family table; do
  grep -q "^$family $table " "$mark" 2>/dev/null && continue
  case $(nft list table "$family" "$table" 2>/dev/null) in *rule* | *chain*) continue ;; esac
  case $table in filter | nat | mangle | raw | kube-proxy) nft delete table "$family" "$table" 2>/dev/null ;; esac
done
if command -v ipvsadm >/dev/null && [ -e /proc/net/ip_vs ]; then ipvsadm -C 2>/dev/null; fi
