# What is in the runtimes before a cluster comes. $lines is what was found out about whom they serve, $use the file that
# keeps it, $settings that for docker's settings. Runs as root under `sh` behind containerd/list.sh, and may run again until
# $use is there.
set -u
umask 077
at=${use%/*}
rm -f "$settings" "$at/docker-images" "$at/containerd-before"
[ ! -f /etc/docker/daemon.json ] || cp /etc/docker/daemon.json "$settings" || exit
if systemctl -q is-active docker.service 2>/dev/null; then
  images=$(docker image ls -aq --no-trunc) || exit
  printf '%s\n' "$images" | sed '/^$/d' | sort -u >"$at/docker-images" || exit
fi
# A containerd that serves somebody or has data was somebody's.
directory() {
  printf '%s\n' "$lines" | sed -n "s/^containerd directory $1 *= *[\"']\(.*\)[\"']\$/\1/p" | tail -n 1
}
root=$(directory root)
state=$(directory state)
root=${root:-/var/lib/containerd} state=${state:-/run/containerd}
database=$root/io.containerd.metadata.v1.bolt/meta.db
if printf '%s\n' "$lines" | grep -q '^containerd containers ' || [ -n "$(ls -A "$root" 2>/dev/null)" ]; then
  if command -v ctr >/dev/null && containerd_answers; then
    list_containerd >"$at/containerd-before.new" || { echo "containerd does not tell what it has"; exit 1; }
  elif systemctl -q is-active containerd.service 2>/dev/null && command -v ctr >/dev/null; then
    echo "containerd runs and does not answer at $CONTAINERD_ADDRESS"
    exit 1
  # One that is stopped cannot be asked. Whether it has anything in the namespace of Kubernetes is seen in its database.
  elif [ -f "$database" ] && tr -c '[:print:]' '\n' <"$database" | grep -qE '(^|[^.])k8s\.io'; then
    {
      echo "unknown $(date -u +%Y-%m-%dT%H:%M:%S)"
      for d in "$state"/io.containerd.runtime.v2.task/k8s.io/*/; do
        [ ! -d "$d" ] || { d=${d%/}; echo "container ${d##*/}"; }
      done
    } >"$at/containerd-before.new"
  else
    : >"$at/containerd-before.new"
  fi
  mv "$at/containerd-before.new" "$at/containerd-before" || exit
fi
printf '%s' "$lines" >"$use.new" && mv "$use.new" "$use"
