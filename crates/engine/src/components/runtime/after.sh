# Takes what came with a cluster out of runtimes that were there before it, and lets their owners have them again. Runs as
# root under `sh` behind docker/restart.sh and containerd/list.sh, when the pods have ended and files are as they were; may run
# again at any time. What was there before was written down by before.sh; $mark tells which runtimes the pods ran in.
set -u
at=${use%/*}
[ -e "$use" ] || exit 0

new() {
  ! grep -qxF -e "$1" "$at/containerd-before"
}
# made_since TIME ID
made_since() {
  created=$(k8s containers info "$2" 2>/dev/null | sed -n 's/^ *"CreatedAt": *"\([^"]*\)".*/\1/p' | head -n 1)
  [ -n "$created" ] && [ "$(printf '%s\n' "$1" "$created" | LC_ALL=C sort | head -n 1)" = "$1" ]
}
# empty_containerd: false when containerd does not tell what it has. Then nothing is removed.
empty_containerd() {
  all=$(list_containerd) || return
  has() { printf '%s\n' "$all" | sed -n "s/^$1 //p"; }
  unknown=$(sed -n 's/^unknown //p' "$at/containerd-before")
  has container | while IFS= read -r id; do
    new "container $id" && { [ -z "$unknown" ] || made_since "$unknown" "$id"; } || continue
    k8s tasks rm -f "$id"
    k8s containers rm "$id"
  done >/dev/null 2>&1
  # Whose images are, nobody knows then; those of archives were removed by their names.
  [ -z "$unknown" ] || return 0
  has sandbox | while IFS= read -r id; do ! new "sandbox $id" || k8s sandboxes rm "$id"; done >/dev/null 2>&1
  has image | while IFS= read -r image; do ! new "image $image" || k8s images rm --sync "$image"; done >/dev/null 2>&1
  if new 'namespace k8s.io'; then
    k8s leases ls -q | while IFS= read -r id; do k8s leases rm "$id"; done
    # Snapshots that stand on others go after these.
    for snapshotter in overlayfs native; do
      for round in 1 2 3 4 5 6 7 8; do
        left=$(k8s snapshots --snapshotter "$snapshotter" ls | awk 'NR > 1 { print $1 }')
        [ -n "$left" ] || break
        for key in $left; do k8s snapshots --snapshotter "$snapshotter" rm "$key"; done
      done
    done
    k8s content ls -q | while IFS= read -r digest; do k8s content rm "$digest"; done
    ctr namespaces rm k8s.io
  fi >/dev/null 2>&1
  return 0
}
if [ -e "$at/containerd-before" ] && grep -qsx 'runtime containerd' "$mark" && command -v ctr >/dev/null; then
  stop=
  if ! systemctl -q is-active containerd.service; then
    # Its unit is the user's again.
    systemctl daemon-reload
    systemctl start containerd.service 2>/dev/null && stop=1
  fi
  # One whose unit has been removed serves nobody.
  if systemctl cat containerd.service >/dev/null 2>&1; then
    for pause in 0.1 0.2 0.5 1 1 1; do
      ! containerd_answers || break
      sleep "$pause"
    done
    failed=
    empty_containerd || failed=1
    [ -z "$stop" ] || systemctl stop containerd.service 2>/dev/null
    if [ -n "$failed" ]; then
      echo "containerd does not tell what it has, so that nothing was taken out of it: see 'journalctl -u containerd', then run it again"
      exit 1
    fi
  fi
fi

if grep -qx 'docker unit' "$use"; then
  if systemctl -q is-active docker.service 2>/dev/null; then
    ids=$(docker ps -aq --filter label=io.kubernetes.pod.namespace) || exit
    # shellcheck disable=SC2086 # ids have no spaces
    [ -z "$ids" ] || docker rm -f -v $ids >/dev/null 2>&1
    # Images that pods were made of, that nobody had before and that none of the user's containers is made of. One without a digest
    # was not pulled but built or loaded there. Where containerd keeps docker's images, all have one.
    case $(docker info -f '{{.DriverStatus}}' 2>/dev/null) in *io.containerd.snapshotter*) rm -f "$at/docker-pod-images" ;; esac
    if [ -e "$at/docker-images" ] && [ -e "$at/docker-pod-images" ]; then
      sort -u "$at/docker-pod-images" | grep -vxF -f "$at/docker-images" | while IFS= read -r id; do
        pulled=$(docker image inspect -f '{{len .RepoDigests}}' "$id") && [ "$pulled" != 0 ] || continue
        users=$(docker ps -aq --filter "ancestor=$id") && [ -z "$users" ] || continue
        docker image rm -f "$id"
      done >/dev/null 2>&1
    fi
  fi
  # Settings are the user's again.
  if [ -e "$at/docker-loaded" ]; then
    restart_docker || exit
    rm -f "$at/docker-loaded"
  fi
  start_again || exit
  if grep -qsx inactive "$at/docker-was"; then systemctl stop docker.service; fi
fi
rm -f "$use" "$settings" "$at/docker-images" "$at/docker-pod-images" "$at/docker-loaded" "$at/docker-was" "$at/containerd-before"
