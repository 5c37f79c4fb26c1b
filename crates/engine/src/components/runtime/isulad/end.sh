# shellcheck shell=sh
isulad_end() {
  command -v isula >/dev/null && systemctl -q is-active isulad.service 2>/dev/null || return 0
  ids=$(isula ps -aq --filter label=io.kubernetes.pod.namespace 2>/dev/null)
  # shellcheck disable=SC2086 # ids have no spaces
  [ -z "$ids" ] || isula rm -f $ids >/dev/null 2>&1
}
isulad_unmount() {
  ! new 'place /run/isulad' || unmount_new '^(/run|/var/lib)/isulad/'
}
