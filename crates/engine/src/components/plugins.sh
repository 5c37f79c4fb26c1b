# shellcheck shell=sh
# Plugins of CNI in directories that hold other programs too, such as /usr/local/bin. The directories are the arguments; $mark
# names the list of what they held before the cluster, and of the directories that had to be made; $programs are those of
# network plugins.
make() {
  [ -z "$1" ] || [ -d "$1" ] || { make "${1%/*}" && mkdir "$1" && printf 'made %s\n' "$1"; }
}
list() {
  for d in "$@"; do
    make "$d"
    for f in "$d"/*; do printf 'there %s\n' "$f"; done
  done
}
new() {
  ! grep -qxF -e "there $1" "$mark"
}
# What manifests of network plugins bring. Others have programs of these names too: a plugin is what speaks CNI.
remove() {
  for d in "$@"; do
    for p in bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap \
      tuning vlan vrf $programs; do
      [ -f "$d/$p" ] && [ ! -h "$d/$p" ] && new "$d/$p" || continue
      ! grep -q -e CNI_COMMAND -e CNI_CONF_NAME "$d/$p" || rm -f "$d/$p"
    done
    # Links to plugins in a directory of their own, by which an older containerd finds them.
    for f in "$d"/*; do
      [ -h "$f" ] && new "$f" || continue
      case $(readlink "$f") in */cni/"${f##*/}" | */cni/bin/"${f##*/}") rm -f "$f" ;; esac
    done
  done
  sed -n 's/^made //p' "$mark" | sort -r | while IFS= read -r d; do rmdir "$d" 2>/dev/null; done
}
