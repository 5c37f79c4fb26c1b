# Ends all that the container runtime and the network left running, when a machine leaves its cluster.
# Runs as root under `sh`, behind pods_before.sh and what each runtime and plugin says of its end, and may run again at any
# time. $mark names the file with what `around` listed before the cluster came: of that nothing is touched, whatever it is
# called.
set -u
systemctl stop kubelet.service kube-proxy.service 2>/dev/null

# kill_all PID...: and waits until they are gone.
killed=
kill_all() {
  killed="$killed $*"
  kill -9 "$@" 2>/dev/null
  for pause in 0.05 0.1 0.2 0.2 0.2 0.2 0.2 0.2 0.2 0.2 0.2; do
    alive=
    for pid in "$@"; do
      IFS= read -r line 2>/dev/null <"/proc/$pid/stat" || continue
      case ${line##*) } in Z* | X*) ;; *) alive=1 ;; esac
    done
    [ -n "$alive" ] || break
    sleep "$pause"
  done
}
# with_children PID...: these and what runs below them, by one look at all processes.
with_children() {
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v roots="$*" '
    BEGIN { n = split(roots, root, " "); for (i = 1; i <= n; i++) found[root[i]] = 1 }
    { pid = $1; sub(/^.*\) /, ""); parent[pid] = $2 }
    END {
      do {
        more = 0
        for (pid in parent) if (!(pid in found) && (parent[pid] in found)) more = found[pid] = 1
      } while (more)
      for (pid in found) print pid
    }'
}
for runtime in $runtimes; do ! ours "$runtime" || "${runtime}_end"; done
# Control groups of pods, the innermost first, with whatever other runtimes still run in them.
pod_groups() {
  for top in /sys/fs/cgroup /sys/fs/cgroup/*; do
    for group in kubepods kubepods.slice; do [ ! -d "$top/$group" ] || echo "$top/$group"; done
    for runtime in $runtimes; do
      ours "$runtime" || continue
      for name in $(runtime_groups "$runtime"); do
        [ ! -d "$top/$name" ] || ! new "place $top/$name" || echo "$top/$name"
      done
    done
  done
}
# Again after a moment: a container that was just being made when its runtime ended leaves a group behind it.
for pause in 0 0.1 0.2 0.4; do
  sleep "$pause"
  groups=$(pod_groups)
  [ -n "$groups" ] || break
  # shellcheck disable=SC2086 # their names have no spaces
  left=$(find $groups -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u)
  # shellcheck disable=SC2086 # numbers
  [ -z "$left" ] || kill_all $left
  # shellcheck disable=SC2086
  find $groups -depth -type d -exec rmdir {} + 2>/dev/null
done

# Mounts of pods; those of other containers lie beside them.
unmount_new '^/var/lib/kubelet/'
for runtime in $runtimes; do ! ours "$runtime" || "${runtime}_unmount"; done
# Network namespaces of pods; one in which something runs is not a pod's any more.
networks=$(ls -l /proc/[0-9]*/ns/net 2>/dev/null | awk -v killed="$killed" '
  BEGIN { n = split(killed, pid, " "); for (i = 1; i <= n; i++) gone["/proc/" pid[i] "/ns/net"] = 1 }
  !($(NF - 2) in gone) { print $NF }' | sort -u)
# shellcheck disable=SC2046 # patterns
for netns in /run/netns/cni-* $(for runtime in $runtimes; do runtime_namespaces "$runtime"; done); do
  [ -e "$netns" ] && new "netns $netns" || continue
  case $networks in *"[$(stat -Lc %i "$netns")]"*) continue ;; esac
  umount -l "$netns" 2>/dev/null
  rm -f "$netns"
done
ls -A /run/netns 2>/dev/null | grep -q . || { unmount_new '^/run/netns$'; rmdir /run/netns 2>/dev/null; }
plugin_places | remove_new
plugin_parents | while IFS= read -r p; do ! new "place $p" || rmdir "$p" 2>/dev/null; done

# Devices of the network plugins, those of pods with the bridge that they are on.
ip -o link show 2>/dev/null | awk -v plugins="^(kube-ipvs0[@:]|nodelocaldns[@:]|$plugin_links)" '
  { name = $2; sub(/[@:].*/, "", name) }
  / master cni0 / || name == "cni0" || $2 ~ plugins { print name }
' | while IFS= read -r link; do
  new "link $link" || continue
  ip link delete "$link" 2>/dev/null || plugins_link_stays "$link"
done
plugins_end

# Chains of kube-proxy and of the plugins with the rules that lead there, in one transaction for each family.
for v in $(variants); do
  "$v-save" 2>/dev/null | awk -v v="$v" -v mark="$mark" -v ours="^(KUBE-|CNI-|$plugin_chains)" \
    -v comments="--comment \"($plugin_comments)" '
    BEGIN { while ((getline line < mark) > 0) known[line] = 1 }
    function drop() { sub(/^-A/, "-D"); print }
    /^\*/ { table = substr($1, 2); n = 0; split("", gone); print; next }
    /^:/ {
      name = substr($1, 2)
      if (name ~ ours && !(("chain " v " " table " " name) in known)) { chains[++n] = name; gone[name] = 1 }
      next
    }
    /^-A/ {
      if ($2 in gone) next
      for (i = 3; i < NF; i++) if (($i == "-j" || $i == "-g") && ($(i + 1) in gone)) { drop(); next }
      # Rules of theirs in chains of the kernel.
      if ($0 ~ comments) drop()
      next
    }
    /^COMMIT/ { for (i = 1; i <= n; i++) print "-F " chains[i]; for (i = 1; i <= n; i++) print "-X " chains[i]; print }
  ' | "$v-restore" --noflush 2>/dev/null
done
for family in ip ip6; do
  for table in kube-proxy $plugin_tables; do
    ! new "nft-table $family $table" || nft delete table "$family" "$table" 2>/dev/null
  done
done
# Sets of addresses, which no rule names any more: those of lists first, since they name others.
for _ in 1 2; do
  ipset list -n 2>/dev/null | grep -E "^(KUBE-|$plugin_sets)" | while IFS= read -r set; do
    ! new "ipset $set" || ipset destroy "$set" 2>/dev/null
  done
done
# Tables that iptables made for them, where they hold nothing now. nft deletes a chain with all the rules in it.
around | grep -vxF -f "$mark" | while read -r kind family table chain; do
  case $kind,$chain in nft-chain,INPUT | nft-chain,FORWARD | nft-chain,OUTPUT | nft-chain,PREROUTING | nft-chain,POSTROUTING) ;; *) continue ;; esac
  nft list chain "$family" "$table" "$chain" 2>/dev/null | sed 1,2d | grep -qvE '^[[:space:]]*(type .* hook .*|\}|)$' ||
    nft delete chain "$family" "$table" "$chain" 2>/dev/null
done
around | grep -vxF -f "$mark" | while read -r kind family table _; do
  case $kind,$table in
  nft-table,filter | nft-table,nat | nft-table,mangle | nft-table,raw | nft-table,security)
    nft list table "$family" "$table" 2>/dev/null | sed 1d | grep -qvE '^[[:space:]]*(\}|)$' || nft delete table "$family" "$table" 2>/dev/null
    ;;
  ipvs,*) ipvsadm -D "$family" "$table" 2>/dev/null ;;
  esac
done
