# shellcheck shell=sh disable=SC2034,SC2154
# dnf, for packages of rpm.

# One that waits for another by itself would wait without a limit.
dnf_install() {
  bring dnf install -y -q --setopt=exit_on_lock=True "$@"
}

dnf_plan() {
  rpm_plan "$@"
}

dnf_is_locked_out() {
  grep -qi 'already locked by' "$out"
}

dnf_fetched() {
  printf '%s\n' "$R"/var/cache/dnf/*/packages/*.rpm
}

dnf_offered() {
  rpm_offered dnf "$@"
}
