# shellcheck shell=sh disable=SC2034,SC2154
# What all operations need: the answers of `stat`, what was found, what is said.

# The next line of `stat`, which names what exists in the order of the operations.
next() {
  IFS=' ' read -r st_d st_a st_u st_g st_s st_day st_time st_zone st_i st_f st_n <&3 || st_n=
}

needs() {
  eval "need_$1=\$2"
}

# ids OWNER GROUP: as numbers, since names can have spaces. One that does not exist yet fits nothing.
ids() {
  w_uid=0 w_gid=0
  [ "$1" = root ] || w_uid=$(id -u "$1" 2>/dev/null) || w_uid=none
  [ "$2" = root ] || {
    w_gid=none
    while IFS=: read -r g_name _ g_id _; do [ "$g_name" != "$2" ] || w_gid=$g_id; done <"$R/etc/group"
  } 2>/dev/null
}

# unless_needed I: for the phases after `look`.
needed() {
  step=$1
  eval "need=\${need_$1}"
  [ -n "$need" ]
}

# What is going to be noted as absent must be: undo would remove it.
really_absent() {
  [ ! -e "$2" ] && [ ! -h "$2" ] || fail "$1" "$2 was not there a moment ago"
}

begin_change() {
  say "start $1"
}

end_change() {
  eval "did_$1=1"
  say "changed $1"
}

# A line "SUM PATH" for each file of the list that can be read. Where there is openssl it takes a quarter of the time.
sums() {
  [ -n "$rehash" ] || return 0
  if command -v openssl >/dev/null; then
    eval "openssl dgst -sha256 -r $rehash" 2>/dev/null
  else
    eval "sha256sum $rehash" 2>/dev/null
  fi
}

next_sum() {
  IFS=' ' read -r sum sum_path <&3 || sum_path=
  sum_path=${sum_path#\*}
}
