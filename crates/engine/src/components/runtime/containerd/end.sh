# shellcheck shell=sh
# What a containerd had that was there before. Where it could not be asked, only what a kubelet made is known to be the cluster's.
before=${mark%/*}/containerd-before
states=/run/containerd
if grep -qs '^containerd containers ' "${mark%/*}/runtime-use"; then
  states="$states $(sed -n "s/^containerd directory state *= *[\"']\(.*\)[\"']\$/\1/p" "${mark%/*}/runtime-use")"
fi
listed() {
  grep -qsxF -e "container $1" -e "sandbox $1" "$before"
}
theirs() {
  ! listed "$1" || return 0
  grep -qs '^unknown ' "$before" || return 1
  for state in $states; do
    ! grep -qs io.kubernetes.cri "$state/io.containerd.runtime.v2.task/k8s.io/$1/config.json" || return 1
  done
}
containerd_end() {
  found=$(shims k8s.io | while read -r pid id; do theirs "$id" || echo "$pid"; done)
  [ -n "$found" ] || return 0
  # Where others have containers too it goes on for them.
  grep -qs '^containerd containers ' "${mark%/*}/runtime-use" || systemctl stop containerd.service 2>/dev/null
  # shellcheck disable=SC2046,SC2086 # numbers
  kill_all $(with_children $found)
}
# pod_parts DIRECTORY: what is the pods' where containerd has its state.
pod_parts() {
  if [ ! -e "$before" ]; then
    printf '%s\n' "$1/io.containerd.runtime.v2.task/k8s.io" "$1/io.containerd.grpc.v1.cri"
    return
  fi
  for d in "$1"/io.containerd.runtime.v2.task/k8s.io/*; do theirs "${d##*/}" || printf '%s\n' "$d"; done
  for d in "$1"/io.containerd.grpc.v1.cri/*/*; do listed "${d##*/}" || printf '%s\n' "$d"; done
}
containerd_unmount() {
  for state in $states; do
    parts=$(pod_parts "$state")
    printf '%s\n' "$parts" | remove_new
    rmdir "$state/io.containerd.runtime.v2.task/k8s.io" "$state"/io.containerd.grpc.v1.cri/* "$state/io.containerd.grpc.v1.cri" 2>/dev/null
  done
}
