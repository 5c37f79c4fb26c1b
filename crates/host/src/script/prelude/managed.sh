# shellcheck shell=sh disable=SC2034,SC2154
# Questions about the record: how a run ended, and what is in it.

# outcome: of a run that lost its connection; waits until it has ended.
outcome() {
  mode=outcome
  if [ ! -d "$S" ]; then echo gone; exit 0; fi
  exec 9>>"$S/lock"
  if ! lock_within "$lock_timeout"; then
    IFS=' ' read -r h_run _ <"$S/holder" || h_run=
    printf 'running %s\n' "${h_run:-?}"
    exit 0
  fi
  exec 4>/dev/null
  await_child >/dev/null
  if [ -f "$S/report" ] && IFS=' ' read -r _ _ r_run <"$S/report" && [ "$r_run" = "$run" ]; then
    echo report
    cat "$S/report"
  else
    echo none
  fi
}

# managed: everything in the record, for facts. However many files there are, each question is one process.
#   KIND STATE SIZE PUT KEY OWNERS NAME   a dash where there is nothing to tell; a name has no line breaks
#   |LINE                                 a line of the certificate that the line before is about
managed() {
  [ -d "$S/record" ] || return 0
  [ ! -f "$S/cluster" ] || { IFS= read -r line <"$S/cluster" && printf 'cluster %s\n' "$line"; }
  count=0 paths= units=
  for f in "$S"/record/*; do
    key=${f##*/}
    case $key in *.orig | *.is | *.text | *.list | *.pending | *.undo | *.zone | *.users | *@*) continue ;; esac
    load "$key" || continue
    owners=
    for o in "$f"@*; do [ ! -e "$o" ] || owners="$owners,${o##*@}"; done
    count=$((count + 1))
    eval "key_$count=\$key kind_$count=\$l_kind name_$count=\$l_name owners_$count=\${owners#,}"
    case $l_kind in
    file) paths="$paths \"\$R\$name_$count\"" ;;
    unit) units="$units \"\$name_$count\"" ;;
    esac
  done
  # Pipes: a here-document needs room on the disk.
  { [ -z "$units" ] || eval "systemctl show -p UnitFileState -p ActiveState $units" 2>/dev/null </dev/null; } | {
    { [ -z "$paths" ] || eval "stat -c '$form' $paths" 2>/dev/null; } | managed_files 3<&0
  } 5<&0
}

# What `stat` says of each file, and the sums of those that are no longer what we put there.
managed_files() {
  i=0 rehash=
  next
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    eval "kind=\$kind_$i name=\$name_$i key=\$key_$i"
    [ "$kind" = file ] || continue
    state=absent size=- is=
    [ ! -f "$S/record/$key.is" ] || IFS= read -r is <"$S/record/$key.is"
    put=${is%% *}
    if [ "$st_n" = "$R$name" ]; then
      case $st_f in
      8???)
        size=$st_s state=$put
        if [ "${is#* }" != "$st_s $st_day $st_time $st_zone $st_i" ]; then
          state=unknown
          rehash="$rehash \"\$R\$name_$i\""
        fi
        ;;
      esac
      next
    fi
    eval "state_$i=\$state size_$i=\$size put_$i=\${put:--}"
  done
  sums | managed_lines 3<&0
}

managed_lines() {
  i=0
  next_sum
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    eval "kind=\$kind_$i name=\$name_$i owners=\$owners_$i key=\$key_$i"
    state=- size=- put=-
    case $kind in
    file)
      eval "state=\$state_$i size=\$size_$i put=\$put_$i"
      if [ "$sum_path" = "$R$name" ]; then
        state=$sum
        next_sum
      elif [ "$state" = unknown ]; then
        state=absent size=-
      fi
      ;;
    unit) unit_state "$name"; state=$u_active,$u_file ;;
    esac
    printf '%s %s %s %s %s %s %s\n' "$kind" "$state" "$size" "$put" "$key" "$owners" "$name"
    case $kind,$size,$name in file,-,*) ;; file,*.crt) [ "$size" -gt 16384 ] || certificate "$R$name" "$size" ;; esac
  done
}

# certificate PATH SIZE: its lines, when every byte of it is the text of certificates and none of a private key.
certificate() {
  text= length=0
  while IFS= read -r line; do
    case $line in *[!\ -~]*) return ;; esac
    text="$text|$line$nl" length=$((length + ${#line} + 1))
  done 2>/dev/null <"$1"
  [ "$length" = "$2" ] || return 0
  case $text in *'PRIVATE KEY'*) ;; *"|-----BEGIN CERTIFICATE-----$nl"*) printf %s "$text" ;; esac
}
