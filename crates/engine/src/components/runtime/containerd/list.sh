# shellcheck shell=sh
# What is in a containerd that may be somebody's.

# `ctr` does not read where containerd listens.
CONTAINERD_ADDRESS=$(sed -n "/^[[:space:]]*\[grpc\]/,/^[[:space:]]*\[/s/^[[:space:]]*address[[:space:]]*=[[:space:]]*[\"']\(.*\)[\"'].*/\1/p" \
  /etc/containerd/config.toml 2>/dev/null | head -n 1)
CONTAINERD_ADDRESS=${CONTAINERD_ADDRESS:-/run/containerd/containerd.sock}
export CONTAINERD_ADDRESS
k8s() {
  ctr -n k8s.io "$@" </dev/null
}
# Without a socket `ctr` would wait for ten seconds.
containerd_answers() {
  [ -S "$CONTAINERD_ADDRESS" ] && ctr namespaces ls -q >/dev/null 2>&1 </dev/null
}
# Sandboxes apart from containers are known since 1.7.
sandboxes() {
  if found=$(k8s sandboxes ls 2>/dev/null); then
    printf '%s\n' "$found" | awk 'NF && $1 != "ID" { print $1 }'
    return
  fi
  said=$(k8s sandboxes ls 2>&1)
  case $said in *"No help topic"* | *nimplemented* | *"unknown service"*) ;; *) printf '%s\n' "$said" >&2; return 1 ;; esac
}
# list_containerd: a line for each thing; false when one of the lists cannot be had.
list_containerd() {
  names=$(ctr namespaces ls -q </dev/null) && images=$(k8s images ls -q) && ids=$(k8s containers ls -q) && groups=$(sandboxes) || return
  printf '%s\n' "$names" | sed '/^$/d;s/^/namespace /'
  printf '%s\n' "$images" | sed '/^$/d;s/^/image /'
  printf '%s\n' "$ids" | sed '/^$/d;s/^/container /'
  printf '%s\n' "$groups" | sed '/^$/d;s/^/sandbox /'
}
