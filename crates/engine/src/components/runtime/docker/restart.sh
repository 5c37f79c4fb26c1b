# shellcheck shell=sh
# What ran in docker when it was restarted, until all of it runs again. $use is that of before.sh.
running=${use%/*}/docker-running
# start_again: those of the list that do not run are started. Of the others docker has removed some by itself (`--rm`), and
# pods are the kubelet's.
start_again() {
  [ -e "$running" ] || return 0
  docker version >/dev/null || return
  failed=
  while IFS= read -r id; do
    state=$(docker inspect -f '{{.State.Running}} {{.HostConfig.AutoRemove}} {{index .Config.Labels "io.kubernetes.pod.namespace"}}' "$id" 2>/dev/null </dev/null) || continue
    [ "$state" = "false false " ] || continue
    docker start "$id" >/dev/null </dev/null || failed="$failed $id"
  done <"$running"
  [ -z "$failed" ] || { echo "docker does not start again what ran before:$failed"; return 1; }
  rm -f "$running"
}
# restart_docker: docker takes its settings anew. What runs in it is put on the list.
restart_docker() {
  if systemctl -q is-active docker.service 2>/dev/null; then
    ids=$(docker ps -q --no-trunc) || return
    { [ ! -e "$running" ] || cat "$running"; printf '%s\n' "$ids"; } | sed '/^$/d' | sort -u >"$running.new" && mv "$running.new" "$running" || return
    # Containers outlive the restart of a docker that has read that they are to.
    if grep -q '"live-restore"[[:space:]]*:[[:space:]]*true' /etc/docker/daemon.json 2>/dev/null; then
      systemctl reload docker.service 2>/dev/null || kill -HUP "$(cat /run/docker.pid)" 2>/dev/null
      for pause in 0.1 0.2 0.5 1 1 1 1; do
        [ "$(docker info -f '{{.LiveRestoreEnabled}}' 2>/dev/null)" != true ] || break
        sleep "$pause"
      done
    fi
  fi
  # Several restarts in a row are no failure.
  systemctl reset-failed docker.service 2>/dev/null
  systemctl restart docker.service
}
