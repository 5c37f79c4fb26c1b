# What this machine is. Stands behind $package_programs and the questions of a caller: $asked_units, $asked_mounts,
# $asked_programs and $asked_sockets, and the functions `asked_entries`, `asked_directories` and `asked_runtimes`. Runs
# under any POSIX sh, reads and never writes, takes nothing from its standard input, loads no kernel module (so neither nft
# nor iptables nor ss is asked). What cannot be found out is left out: the reader takes an absent section for an unknown fact.
#
# The answer is a first line with a boundary that nobody could have known before, then sections:
# a line of the boundary and a name, then bytes as they are. A file or a process that tries to
# look like a section cannot, and an answer without the section "end" was cut short.
hatchery_facts() (
  set +eu -f
  LC_ALL=C
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  SYSTEMD_PAGER=cat
  export LC_ALL PATH SYSTEMD_PAGER
  newline='
'
  blanks=" 	$newline"
  IFS=$blanks

  section() { printf '\n%s %s\n' "$boundary" "$1"; }

  # file SECTION PATH [BYTES]: the beginning of an ordinary file.
  file() {
    if [ -f "$2" ] && [ -r "$2" ]; then
      section "$1"
      head -c "${3:-16384}" "$2"
    fi
  }

  # value NAME PATH: the first line of a small file, without a new process.
  value() {
    line=
    if [ -r "$2" ]; then
      IFS= read -r line <"$2"
      [ -z "$line" ] || printf '%s %.1024s\n' "$1" "$line"
    fi
  }

  # What might hang gets three seconds, where there is a timeout that counts them.
  if timeout 3 true; then
    limited() { timeout 3 "$@"; }
  else
    limited() { "$@"; }
  fi

  clock() {
    section "$1"
    date '+%s.%N %z'
  }

  values() {
    section values
    value kernel /proc/sys/kernel/osrelease
    value hostname /proc/sys/kernel/hostname
    [ ! -f /etc/hostname ] || value static-hostname /etc/hostname
    [ ! -f /etc/machine-id ] || value machine-id /etc/machine-id
    value boot-id /proc/sys/kernel/random/boot_id
    value product-uuid /sys/class/dmi/id/product_uuid
    value product-vendor /sys/class/dmi/id/sys_vendor
    value product-name /sys/class/dmi/id/product_name
    value hypervisor /sys/hypervisor/type
    value uptime /proc/uptime
    value cpus /sys/devices/system/cpu/online
    value init /proc/1/comm
    value cgroup-controllers /sys/fs/cgroup/cgroup.controllers
    value selinux-enforce /sys/fs/selinux/enforce
    value apparmor /sys/module/apparmor/parameters/enabled
    if [ -f /run/systemd/container ]; then
      value container /run/systemd/container
    else
      # The rest of the first process's environment may hold secrets: it stays here.
      tr '\000' '\n' </proc/1/environ | while IFS= read -r line; do
        case $line in container=?*) printf 'container %s\n' "${line#*=}" ;; esac
      done
    fi
    machine=$(uname -m)
    [ -z "$machine" ] || printf 'machine %s\n' "$machine"
    target=$(readlink -f /bin/sh)
    [ -z "$target" ] || printf 'sh %s\n' "$target"
    target=$(command -v iptables) && target=$(readlink -f "$target")
    [ -z "$target" ] || printf 'iptables %s\n' "$target"
  }

  # By one process that reads in one go: a shell that reads byte by byte gets but the first digit.
  sysctls() {
    set --
    for key in net/ipv4/ip_forward net/ipv4/conf/all/rp_filter net/ipv4/conf/default/rp_filter \
      net/ipv4/ip_local_port_range net/ipv4/ip_nonlocal_bind net/ipv6/conf/all/forwarding \
      net/ipv6/conf/all/disable_ipv6 net/bridge/bridge-nf-call-iptables \
      net/bridge/bridge-nf-call-ip6tables net/bridge/bridge-nf-call-arptables \
      net/netfilter/nf_conntrack_max net/core/somaxconn vm/swappiness vm/overcommit_memory \
      vm/panic_on_oom vm/max_map_count kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
      kernel/pid_max kernel/cap_last_cap fs/inotify/max_user_instances \
      fs/inotify/max_user_watches fs/file-max fs/may_detach_mounts user/max_user_namespaces; do
      [ ! -r "/proc/sys/$key" ] || set -- "$@" "/proc/sys/$key"
    done
    section sysctls
    [ $# -eq 0 ] || grep -H '' "$@"
  }

  # Where programs lie; of one that the shell has built in, the name.
  programs() {
    section programs
    for program in $package_programs \
      conntrack socat iptables ip6tables ipset ipvsadm nft ebtables ethtool ip ss mount tar gzip \
      zstd xz flock timeout setsid sha256sum modprobe sysctl hostnamectl systemctl curl openssl \
      sudo firewall-cmd ufw chronyd docker runc crun ctr crictl nerdctl $asked_programs; do
      command -v "$program"
    done
  }

  modules='br_netfilter|overlay|nf_conntrack|nf_nat|nf_tables|ip_tables|ip6_tables|iptable_nat'
  modules="$modules|iptable_filter|ip_set|xt_set|ip_vs|ip_vs_rr|ip_vs_wrr|ip_vs_sh|vxlan|ipip"
  modules="$modules|wireguard|bridge|veth|dummy|tun|nvme_tcp|rbd"

  # Things whose being there says something.
  paths() {
    section paths
    IFS='|'
    set -- $modules
    IFS=$blanks
    for name in "$@"; do
      [ ! -d "/sys/module/$name" ] || printf '%s\n' "/sys/module/$name"
    done
    for path in /.dockerenv /run/.containerenv /proc/vz /proc/bc /proc/modules /sys/fs/selinux \
      /sys/module/apparmor /run/systemd/system /etc/selinux/config /proc/net/ip_tables_names \
      /proc/net/ip6_tables_names /proc/net/ip_vs /etc/NetworkManager/NetworkManager.conf \
      /etc/cloud/cloud.cfg.d; do
      [ ! -e "$path" ] || printf '%s\n' "$path"
    done
    [ ! -s /var/lib/dpkg/status ] || echo /var/lib/dpkg/status
    for path in $asked_sockets; do
      [ ! -S "$path" ] || printf '%s\n' "$path"
    done
  }

  # entries_of DIRECTORY: what lies in it; names that break lines are left out.
  entries_of() {
    set +f
    set -- "$1"/*
    set -f
    [ -e "$1" ] || return
    count=0
    for path in "$@"; do
      case $path in *"$newline"*) continue ;; esac
      count=$((count + 1))
      [ "$count" -le 64 ] || break
      printf '%s\n' "$path"
    done
  }

  # directory_of FILE NAME BASE ENTRY: the directory that the setting NAME of an environment file names, from BASE on where its
  # path is not absolute, and whether there is a directory ENTRY in it.
  directory_of() {
    [ -r "$1" ] || return
    value=
    while IFS= read -r line; do
      case $line in "$2="*) value=${line#*=} ;; esac
    done <"$1"
    value=${value#\"}
    value=${value%\"}
    case $value in '') return ;; /*) ;; *) value=$3/$value ;; esac
    if [ -d "$value/$4" ]; then state=used; else state=empty; fi
    printf '%s %s %s\n' "$2" "$state" "$value"
  }

  kernel_modules() {
    release=
    IFS= read -r release </proc/sys/kernel/osrelease
    tree=/lib/modules/$release
    if [ -r /proc/modules ]; then
      section modules-loaded
      grep -E "^($modules) " /proc/modules
    fi
    if [ -r "$tree/modules.dep" ]; then
      section modules-loadable
      grep -E -o "^[^ :]*/($modules)\.ko[^/ :]*:" "$tree/modules.dep"
    fi
    if [ -r "$tree/modules.builtin" ]; then
      section modules-builtin
      grep -E "/($modules)\.ko\$" "$tree/modules.builtin"
      return
    fi
    wanted='MODULES|BRIDGE_NETFILTER|OVERLAY_FS|NF_CONNTRACK|NF_NAT|NF_TABLES|IP_NF_IPTABLES'
    wanted="$wanted|IP_NF_IPTABLES_LEGACY|IP6_NF_IPTABLES|IP6_NF_IPTABLES_LEGACY|IP_NF_NAT"
    wanted="$wanted|IP_NF_FILTER|IP_SET|NETFILTER_XT_SET|IP_VS|IP_VS_RR|IP_VS_WRR|IP_VS_SH|VXLAN"
    wanted="$wanted|NET_IPIP|WIREGUARD|BRIDGE|VETH|DUMMY|TUN|NVME_TCP|BLK_DEV_RBD"
    if [ -r "/boot/config-$release" ]; then
      section kernel-config
      grep -E "^(# )?CONFIG_($wanted)[= ]" "/boot/config-$release"
    elif [ -r /proc/config.gz ] && command -v gzip >/dev/null; then
      section kernel-config
      gzip -dc </proc/config.gz | grep -E "^(# )?CONFIG_($wanted)[= ]"
    fi
  }

  systemd() {
    if [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then
      section systemd
      limited systemctl show -p Version -p SystemState -p Virtualization
      section units
      limited systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState -p FragmentPath \
        firewalld.service ufw.service nftables.service iptables.service \
        systemd-resolved.service NetworkManager.service systemd-networkd.service chronyd.service chrony.service \
        ntpd.service systemd-timesyncd.service $asked_units
    fi
  }

  # Mounts of the machine itself, without those that container runtimes make by the thousand.
  # Only local file systems are asked how full they are: a lost server would not answer.
  mounts() {
    local_types='ext[234]|xfs|btrfs|zfs|f2fs|jfs|reiserfs|bcachefs|vfat'
    far_types='nfs4?|cifs|ceph|glusterfs|9p|virtiofs|fuse\.[^ ]*'
    clutter="run/containerd|run/docker|run/containers|run/netns$asked_mounts"
    table=$(grep -E "( - ($local_types|$far_types|cgroup2?) )|^([^ ]+ ){4}/ " /proc/self/mountinfo |
      grep -E -v "^([^ ]+ ){4}/($clutter)/" | head -n 256)
    [ -n "$table" ] || return
    section mounts
    printf '%s\n' "$table"
    set --
    IFS=$newline
    for line in $table; do
      path=${line#* * * * }
      path=${path%% *}
      case "$path ${line##* - }" in
        *\\* | *" cgroup"* | *" nfs"* | *" cifs "* | *" ceph "* | *" glusterfs "* | *" 9p "* | *" virtiofs "* | *" fuse."*) ;;
        *) set -- "$@" "$path" ;;
      esac
    done
    IFS=$blanks
    [ $# -gt 0 ] || return
    section file-systems
    limited stat -f -c '%S %b %a %c %d %n' "$@"
  }

  network() {
    if command -v ip >/dev/null; then
      section links
      ip -o link show | head -n 1024
      section addresses
      ip -o addr show | head -n 1024
    fi
    section routes-4
    grep -E '^[^[:space:]]+[[:space:]]+00000000[[:space:]]' /proc/net/route | head -n 64
    section routes-6
    grep '^00000000000000000000000000000000 00 ' /proc/net/ipv6_route | head -n 64
  }

  # Listening sockets as the kernel lists them, then "inode pid name" of their processes. Names of
  # files that a process holds open are anybody's choice: -q keeps them on their own line, which
  # BusyBox's ls does unasked, and one that contains an arrow is not a socket.
  listening() {
    table=$(grep -E -H ': [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:0000 (0A|07) ' \
      /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | head -n 1024)
    [ -e /proc/net/tcp ] || return
    section sockets
    printf '%s\n' "$table"
    inodes=
    count=0
    IFS=$newline
    for line in $table; do
      IFS=$blanks
      set -- ${line#*:}
      case ${10} in
        '' | 0 | *[!0-9]*) ;;
        *) inodes="$inodes|${10}" count=$((count + 1)) ;;
      esac
    done
    IFS=$blanks
    [ "$count" -gt 0 ] && [ "$count" -le 256 ] || return
    section socket-owners
    list=-ln
    ls -dq / >/dev/null && list=-lnq
    set +f
    owners=$(ls "$list" /proc/[0-9]*/fd | grep -E "^/proc/|^l[^>]* -> socket:\[(${inodes#|})\]\$")
    set -f
    pid=
    IFS=$newline
    for line in $owners; do
      case $line in
        /proc/*)
          pid=${line#/proc/}
          pid=${pid%%/*}
          ;;
        *)
          inode=${line##*\[}
          name=
          IFS= read -r name <"/proc/$pid/comm"
          printf '%s %s %s\n' "${inode%\]}" "$pid" "$name"
          ;;
      esac
    done
    IFS=$blanks
  }

  # The names alone: a proxy's address may hold a password.
  proxies() {
    [ -f /etc/environment ] || return
    section proxies
    IFS=$newline
    for line in $(head -c 16384 /etc/environment); do
      line=${line#export }
      case ${line%%=*} in
        *[!A-Za-z_]*) ;;
        *_[Pp][Rr][Oo][Xx][Yy]) printf '%s\n' "${line%%=*}" ;;
      esac
    done
    IFS=$blanks
  }

  versions() {
    for program in $asked_programs; do
      if command -v "$program" >/dev/null; then
        section "version-$program"
        limited "$program" --version | head -c 512
      fi
    done
  }

  # Whether the data with which the machine was made have cloud-init write /etc/hosts. The rest of them may be secret.
  cloud_init() {
    [ -d /etc/cloud/cloud.cfg.d ] && [ ! -e /etc/cloud/cloud-init.disabled ] || return
    # The first that speaks of it counts: what the user says is stronger than what the provider does.
    for file in cloud-config.txt vendor2-cloud-config.txt vendor-cloud-config.txt; do
      file=/var/lib/cloud/instance/$file
      [ -f "$file" ] || continue
      line=$(head -c 1048576 "$file" | grep -E '^manage_etc_hosts[[:space:]]*:' | tail -n 1 | tr -d "\"'")
      [ -n "$line" ] || continue
      set -- ${line#*:}
      case ${1:-} in
        [Tt]rue | TRUE | [Yy]es | YES | [Oo]n | ON | 1 | localhost | template)
          section cloud-init
          echo hosts
          ;;
      esac
      return
    done
  }

  # Whom the container runtimes serve. Once a cluster has come its own containers are there too, so that what was found
  # before lies beside its record.
  runtime_use() {
    section runtime-use
    settings=/etc/docker/daemon.json
    if [ -f /var/lib/hatchery/runtime-use ]; then
      echo before
      settings=/var/lib/hatchery/docker-settings
      head -c 16384 /var/lib/hatchery/runtime-use
    else
      [ ! -f "$settings" ] || echo 'docker settings'
      root=$(grep -E -o '"(data-root|graph)"[[:space:]]*:[[:space:]]*"[^"]*"' "$settings" | head -n 1)
      root=${root%\"}
      root=${root##*\"}
      root=${root:-/var/lib/docker}
      docker_arguments
      # Docker forgets tasks of containers that ended; what it knows lies in its own directory.
      count 'docker containers' "$root/containers" '' ||
        count 'docker containers' /run/docker/containerd/daemon/io.containerd.runtime.v2.task '*/' ||
        count 'docker containers' /run/containerd/io.containerd.runtime.v2.task/moby ''
      [ ! -f "$root/swarm/docker-state.json" ] || echo 'docker swarm'
      # Releases before 1.3, and docker's with them, keep them by the name of another runtime.
      state=$(grep -E '^state[[:space:]]*=' /etc/containerd/config.toml | head -n 1)
      state=${state#*[\"\']}
      state=${state%%[\"\']*}
      case $state in /*) ;; *) state=/run/containerd ;; esac
      count 'containerd containers' "$state/io.containerd.runtime.v2.task" '*/' ||
        count 'containerd containers' "$state/io.containerd.runtime.v1.linux" '*/'
      [ ! -f /etc/containerd/config.toml ] || grep -E '^(root|state)[[:space:]]*=' /etc/containerd/config.toml | while IFS= read -r line; do
        printf 'containerd directory %s\n' "$line"
      done
    fi
    file docker-settings "$settings" 65536
  }

  # The names of the arguments that docker runs with. Of their values only $root is taken: others may be secret.
  docker_arguments() {
    pid=
    name=
    [ ! -r /run/docker.pid ] || read -r pid </run/docker.pid
    [ -z "$pid" ] || IFS= read -r name <"/proc/$pid/comm"
    [ "$name" = dockerd ] || return
    IFS=$newline
    set -- $(tr '\000' '\n' <"/proc/$pid/cmdline")
    IFS=$blanks
    while [ $# -gt 0 ]; do
      case $1 in
        --data-root=* | --graph=* | -g=*) root=${1#*=} ;;
        --data-root | --graph | -g) root=${2:-$root} ;;
      esac
      case $1 in -*) printf 'docker flag %s\n' "${1%%=*}" ;; esac
      shift
    done
  }

  # count WORDS DIRECTORY BETWEEN: how many directories are below it; false when there are none.
  count() {
    set +f
    set -- "$1" "$2"/$3*/
    set -f
    [ -d "$2" ] || return 1
    printf '%s %s\n' "$1" "$(($# - 1))"
  }

  boundary=
  read -r boundary </proc/sys/kernel/random/uuid
  printf 'hatchery-facts 1 %s\n' "$boundary"
  clock clock-begin
  values
  programs
  paths
  section entries
  asked_entries
  section directories
  asked_directories
  section runtimes
  asked_runtimes
  systemd
  # Without these an empty section would say that there is nothing where nothing was seen.
  if command -v head >/dev/null && command -v grep >/dev/null; then
    if [ -r /etc/os-release ]; then file os-release /etc/os-release; else file os-release /usr/lib/os-release; fi
    file swaps /proc/swaps
    file hosts /etc/hosts 65536
    file resolv-conf /etc/resolv.conf
    file resolved-resolv-conf /run/systemd/resolve/resolv.conf
    file ufw-conf /etc/ufw/ufw.conf
    file selinux-config /etc/selinux/config
    file iptables-tables /proc/net/ip_tables_names
    section status
    grep -E '^(Uid|CapBnd):' /proc/self/status
    section memory
    grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
    sysctls
    kernel_modules
    mounts
    network
    listening
    proxies
    versions
    cloud_init
    runtime_use
  fi
  clock clock-end
  section end
)
hatchery_facts </dev/null 2>/dev/null
