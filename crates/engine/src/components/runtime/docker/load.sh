# Has a docker that was there before read the settings that were merged into its own. Runs as root under `sh` behind
# docker/restart.sh; $use and $settings are those of before.sh.
set -u
at=${use%/*}
[ -e "$at/docker-was" ] || systemctl is-active docker.service >"$at/docker-was" 2>/dev/null
[ -s "$at/docker-was" ] || echo inactive >"$at/docker-was"
# From here on there is something to be undone.
: >>"$at/docker-loaded"
if restart_docker && start_again; then
  cp /etc/docker/daemon.json "$at/docker-loaded.new" && mv "$at/docker-loaded.new" "$at/docker-loaded"
  exit
fi
echo "docker does not work with the merged settings; it goes on with its own. 'journalctl -u docker' tells why"
if [ -e "$settings" ]; then cat "$settings" >/etc/docker/daemon.json; else rm -f /etc/docker/daemon.json; fi
restart_docker && start_again
exit 1
