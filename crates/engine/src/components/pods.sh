# Ends all that the container runtime and the network left running, when a machine leaves its cluster.
# Runs as root under `sh`, behind pods_before.sh, and may run again at any time. $mark names the file with what `around`
# listed before the cluster came: of that nothing is touched, whatever it is called.
set -u
new() {
  ! grep -qxF -e "$1" "$mark"
}
systemctl stop kubelet.service kube-proxy.service 2>/dev/null
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
  for pause in 0.05 0.1 0.2 0.2 0.2 0.2 0.2 0.2 0.2 0.2 0.2; do
    alive=
    for pid in $found $children; do
      IFS= read -r line 2>/dev/null <"/proc/$pid/stat" || continue
      case ${line##*) } in Z* | X*) ;; *) alive=1 ;; esac
    done
    [ -n "$alive" ] || break
    sleep "$pause"
  done
fi

# Mounts of pods, the innermost first; those of other containers lie beside them.
cut -d ' ' -f 2 /proc/self/mounts |
  grep -E '^(/var/lib/kubelet/|/run/containerd/io\.containerd\.(runtime\.v2\.task/k8s\.io|grpc\.v1\.cri)/)' |
  sort -r | while IFS= read -r at; do umount -l "$(printf '%b' "$at")" 2>/dev/null; done
# Docker forgets its handle on the machine's own namespace when pods end in a hurry.
for netns in /run/netns/cni-* /run/docker/netns/default; do
  [ -e "$netns" ] && new "netns $netns" || continue
  umount -l "$netns" 2>/dev/null
  rm -f "$netns"
done
rm -rf /run/flannel /run/containerd/io.containerd.runtime.v2.task/k8s.io /run/containerd/io.containerd.grpc.v1.cri 2>/dev/null
rmdir /run/netns 2>/dev/null

# Control groups of pods, empty by now, the innermost first.
for top in /sys/fs/cgroup /sys/fs/cgroup/*; do
  for group in kubepods kubepods.slice; do
    [ ! -d "$top/$group" ] || find "$top/$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
done

# Devices of the network plugins, those of pods with the bridge that they are on.
ip -o link show 2>/dev/null | awk '
  { name = $2; sub(/[@:].*/, "", name) }
  / master cni0 / || name ~ /^(cni0|flannel\.1|flannel-v6\.1|kube-ipvs0|nodelocaldns|vxlan\.calico)$/ ||
    (name ~ /^cali/ && $2 ~ /@/) { print name }
' | while IFS= read -r link; do
  ! new "link $link" || ip link delete "$link" 2>/dev/null
done

# Chains of kube-proxy and of the plugins with the rules that lead there, in one transaction for each family.
for v in $(variants); do
  "$v-save" 2>/dev/null | awk -v v="$v" -v mark="$mark" '
    BEGIN { while ((getline line < mark) > 0) known[line] = 1 }
    function drop() { sub(/^-A/, "-D"); print }
    /^\*/ { table = substr($1, 2); n = 0; split("", gone); print; next }
    /^:/ {
      name = substr($1, 2)
      if (name ~ /^(KUBE-|FLANNEL-|CNI-|cali-)/ && !(("chain " v " " table " " name) in known)) { chains[++n] = name; gone[name] = 1 }
      next
    }
    /^-A/ {
      if ($2 in gone) next
      for (i = 3; i < NF; i++) if (($i == "-j" || $i == "-g") && ($(i + 1) in gone)) { drop(); next }
      if (/--comment "flanneld /) drop()
      next
    }
    /^COMMIT/ { for (i = 1; i <= n; i++) print "-F " chains[i]; for (i = 1; i <= n; i++) print "-X " chains[i]; print }
  ' | "$v-restore" --noflush 2>/dev/null
done
for family in ip ip6; do
  ! new "nft-table $family kube-proxy" || nft delete table "$family" kube-proxy 2>/dev/null
done
# What came with the cluster and holds nothing now; what holds something is not let go of.
around | grep -vxF -f "$mark" | while read -r kind family table chain; do
  [ "$kind" != nft-chain ] || nft delete chain "$family" "$table" "$chain" 2>/dev/null
done
around | grep -vxF -f "$mark" | while read -r kind family table _; do
  case $kind,$(nft list table "$family" "$table" 2>/dev/null) in
  nft-table,*chain* | nft-table,*' set '* | nft-table,*' map '*) ;;
  nft-table,*) nft delete table "$family" "$table" 2>/dev/null ;;
  ipvs,*) ipvsadm -D "$family" "$table" 2>/dev/null ;;
  esac
done
