# shellcheck shell=sh
docker_end() {
  command -v docker >/dev/null && systemctl -q is-active docker.service 2>/dev/null || return 0
  ids=$(docker ps -aq --filter label=io.kubernetes.pod.namespace 2>/dev/null)
  # The images of a docker that was there before are taken out of it later.
  # shellcheck disable=SC2086 # ids have no spaces
  [ -z "$ids" ] || docker inspect -f '{{.Image}}' $ids >>"${mark%/*}/docker-pod-images" 2>/dev/null
  # shellcheck disable=SC2086
  [ -z "$ids" ] || docker rm -f -v $ids >/dev/null 2>&1
}
# Docker forgets its handle on the machine's own network namespace when pods end in a hurry.
docker_unmount() {
  new 'netns /run/docker/netns/default' || return 0
  umount -l /run/docker/netns/default 2>/dev/null
  rm -f /run/docker/netns/default
}
