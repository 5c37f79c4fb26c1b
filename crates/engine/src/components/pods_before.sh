# shellcheck shell=sh
# Behind what each runtime and plugin says of itself: $runtimes, runtime_places, runtime_groups, runtime_namespaces,
# runtime_program, plugin_places and plugins_before.
# around: what of the network, of runtimes and of plugins is there, a line each. What was there before a cluster is nobody's
# but its owner's.
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
# Directories above what plugins keep outside those of CNI, the innermost first. Others may have put something there too.
plugin_parents() {
  printf '%s\n' /usr/libexec/kubernetes/kubelet-plugins/volume/exec /usr/libexec/kubernetes/kubelet-plugins/volume \
    /usr/libexec/kubernetes/kubelet-plugins /usr/libexec/kubernetes
}
# What is in places that several may use.
runtime_parts() {
  printf '%s\n' /run/containerd/*/k8s.io /run/containerd/*/k8s.io/* /run/containerd/io.containerd.grpc.v1.cri/*/* \
    /run/containerd/*/moby /run/runc/*
}
around() {
  for v in $(variants); do
    "$v-save" 2>/dev/null | awk -v v="$v" '/^\*/ { t = substr($1, 2) } /^:/ { print "chain", v, t, substr($1, 2) }'
  done
  nft list tables 2>/dev/null | awk '{ print "nft-table", $2, $3 }'
  nft list chains 2>/dev/null | awk '$1 == "table" { t = $2 " " $3 } $1 == "chain" { print "nft-chain", t, $2 }'
  ipset list -n 2>/dev/null | sed 's/^/ipset /'
  ip -o link show 2>/dev/null | awk '{ n = $2; sub(/[@:].*/, "", n); print "link", n }'
  plugins_before
  for n in /run/netns/* /run/docker/netns/*; do [ ! -e "$n" ] || echo "netns $n"; done
  ipvsadm -Sn 2>/dev/null | awk '$1 == "-A" { print "ipvs", $2, $3 }'
  {
    plugin_places
    plugin_parents
    for runtime in $runtimes; do runtime_places "$runtime"; done
    runtime_parts
  } | while IFS= read -r p; do [ ! -e "$p" ] && [ ! -h "$p" ] || echo "place $p"; done
  cut -d ' ' -f 2 /proc/self/mounts | sed 's/^/mount /'
  for runtime in $runtimes; do
    for name in $(runtime_groups "$runtime"); do
      for g in "/sys/fs/cgroup/$name" /sys/fs/cgroup/*/"$name"; do [ ! -d "$g" ] || echo "place $g"; done
    done
  done
}
new() {
  ! grep -qxF -e "$1" "$mark"
}
# ours RUNTIME: whether the cluster's pods have run in it.
ours() {
  grep -qxF -e "runtime $1" "$mark"
}
# unmount_new PATTERN: what was mounted since at places that fit, the innermost first.
unmount_new() {
  cut -d ' ' -f 2 /proc/self/mounts | grep -E -e "$1" | sort -r | while IFS= read -r at; do
    ! new "mount $at" || umount -l "$(printf '%b' "$at")" 2>/dev/null
  done
}
# remove_new: of the places on the standard input those that were not there.
remove_new() {
  while IFS= read -r p; do
    new "place $p" && { [ -e "$p" ] || [ -h "$p" ]; } || continue
    unmount_new "^$p(/|\$)"
    # Of what is still mounted nothing is removed.
    cut -d ' ' -f 2 /proc/self/mounts | grep -qE -e "^$p(/|\$)" || rm -rf "$p"
  done
}
# used PATH: whether somebody listens there or below, or a process has it among its arguments.
used() {
  {
    awk '{ print $8 }' /proc/net/unix
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\000' '\n'
  } | grep -qE -e "^(-[A-Za-z-]+=)?(unix://)?(/var)?$1(/|\$)"
}
# runs NAME: whether there is a process of this name.
runs() {
  cat /proc/[0-9]*/comm 2>/dev/null | grep -qxF -e "$1"
}
# shims NAMESPACE: each that runs containers of this namespace of containerd, with the id of its first container.
shims() {
  for d in /proc/[0-9]*; do
    # By its name first: the text of this script is in a command line too.
    IFS= read -r comm 2>/dev/null <"$d/comm" || continue
    case $comm in containerd-shim*) ;; *) continue ;; esac
    words=" $(tr '\000' ' ' 2>/dev/null <"$d/cmdline")"
    case $words in *" -namespace $1 "*) ;; *) continue ;; esac
    id=${words#*" -id "}
    echo "${d#/proc/} ${id%% *}"
  done
}
# remove_runtimes: what the cluster's own runtimes left in memory, when they have ended. What is in use is somebody else's.
remove_runtimes() {
  for runtime in $runtimes; do
    ours "$runtime" || continue
    runtime_places "$runtime" | while IFS= read -r p; do
      case $p in
      /run/containerd | /run/runc) remove_shared "$p" ;;
      *) alive "$runtime" || used "$p" || printf '%s\n' "$p" | remove_new ;;
      esac
    done
  done
}
alive() {
  systemctl -q is-active "$1.service" 2>/dev/null && return
  runs "$(runtime_program "$1")"
}
# remove_shared PLACE: what was the pods' in a place where others may have something too, and all of it where nobody has.
remove_shared() {
  [ -d "$1" ] || return 0
  others=
  for d in "$1"/* "$1"/*/*; do
    [ -d "$d" ] || continue
    case ${d#"$1"/} in
    k8s.io | */k8s.io) namespace=k8s.io whose=containerd ;;
    moby | */moby) namespace=moby whose=docker ;;
    io.containerd.runtime.*/* | runc/*) namespace= whose=- ;;
    *) continue ;;
    esac
    if ours "$whose" && [ -z "$(shims "$namespace")" ]; then
      printf '%s\n' "$d" | remove_new
    elif [ -n "$(ls -A "$d")" ]; then
      others=1
    fi
  done
  if [ "$1" = /run/containerd ] && [ -z "$others" ] && ! used "$1"; then printf '%s\n' "$1" | remove_new; fi
  ! new "place $1" || rmdir "$1" 2>/dev/null
  return 0
}
