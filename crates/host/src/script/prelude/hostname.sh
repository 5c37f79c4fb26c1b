# shellcheck shell=sh disable=SC2034,SC2154
# The name of the machine.

# hostname_is I KEY NAME UP
hostname_is() {
  case $phase in
  look)
    need=
    read_value "$R/proc/sys/kernel/hostname" && [ "$value" = "$3" ] || need="name $value"
    kernel_name=$value
    read_value "$R/etc/hostname" && [ "$value" = "$3" ] || need=${need:-file}
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      # The kernel's name is a record of its own: it need not be the one in the file.
      load "$2.kernel" || note "$2.kernel" kernel_hostname there "$kernel_name" -
      own "$2.kernel"
      keep "$1" "$2" file "$R/etc/hostname" /etc/hostname
    elif load "$2"; then
      own "$2"
      own "$2.kernel"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    printf '%s\n' "$3" >"$T/hostname" && chmod 644 "$T/hostname"
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/hostname" "$R/etc/hostname" "$2" "$device"
    { printf '%s\n' "$3" >"$R/proc/sys/kernel/hostname"; } 2>"$out" || fail "$1" "cannot set the hostname"
    end_change "$1"
    ;;
  esac
}
