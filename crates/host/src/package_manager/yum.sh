# shellcheck shell=sh disable=SC2034,SC2154
# yum, for packages of rpm.

# One that waits for another by itself would wait without a limit.
yum_install() {
  bring yum install -y -q --setopt=exit_on_lock=True "$@"
}

yum_plan() {
  rpm_plan "$@"
}

yum_is_locked_out() {
  grep -qi 'holding the yum lock\|already locked by' "$out"
}

yum_fetched() {
  printf '%s\n' "$R"/var/cache/yum/*/*/*/packages/*.rpm
}

yum_offered() {
  rpm_offered yum "$@"
}
