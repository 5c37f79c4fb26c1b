# shellcheck shell=sh disable=SC2034,SC2154
# Units of systemd.

# unit I KEY NAME ENABLED STATE TRIGGERS: ENABLED yes, no or -; STATE started, stopped or -;
# TRIGGERS the numbers of operations whose change asks for a restart, each followed by a comma.
unit() {
  case $phase in
  look)
    unit_state "$3"
    need=
    case $4,$u_file in yes,enabled* | yes,static | yes,alias | yes,generated | yes,indirect) ;; yes,*) need="$need disabled" ;; no,enabled*) need="$need enabled" ;; esac
    case $5,$u_active in started,active) ;; started,*) need="$need $u_active" ;; stopped,active | stopped,activating | stopped,reloading) need="$need $u_active" ;; esac
    [ ! -f "$S/record/$2.pending" ] || need="$need pending"
    triggers=$6
    while [ -n "$triggers" ]; do
      eval "moved=\${need_${triggers%%,*}:-}"
      triggers=${triggers#*,}
      [ -z "$moved" ] || { need="$need trigger"; break; }
    done
    need=${need# }
    needs "$1" "$need"
    eval "was_$1=\"\$u_file \$u_active\""
    ;;
  hash)
    # A file that only seemed to differ asks for nothing.
    needed "$1" || return 0
    case $need in
    *trigger)
      triggers=$6
      while [ -n "$triggers" ]; do
        eval "moved=\${need_${triggers%%,*}:-}"
        triggers=${triggers#*,}
        [ -z "$moved" ] || return 0
      done
      need=${need%trigger}
      needs "$1" "${need% }"
      ;;
    esac
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        eval "was=\$was_$1"
        case $was in absent*) ;; *) ! is_packaged "$3" || was='absent inactive' ;; esac
        note "$2" unit there "$3" "$was"
      fi
      case $need in *trigger | *pending) : >"$S/record/$2.pending" ;; esac
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    if ! needed "$1"; then
      # A package of this task may have enabled and started it.
      [ -n "$packaged" ] || return 0
      u_now=$nl$(systemctl show -p UnitFileState -p ActiveState "$3" 2>/dev/null </dev/null 9>&-)$nl
      case $4,$u_now in no,*"${nl}UnitFileState=enabled"*) need=enabled ;; esac
      case $5,$u_now in stopped,*"${nl}ActiveState=active$nl"*) need="$need active" ;; esac
      [ -n "$need" ] || return 0
      eval "was=\$was_$1"
      own "$2"
      load "$2" || note "$2" unit there "$3" "$was"
      flush_records
    fi
    begin_change "$1"
    # The run that changed its file died before systemd was told.
    case $need in *pending*) reload=1 ;; esac
    reload_units "$1"
    case $4,$need in
    yes,*disabled*) within "$step_timeout" systemctl enable "$3" || fail "$1" "cannot enable $3" ;;
    no,*enabled*) within "$step_timeout" systemctl disable "$3" || fail "$1" "cannot disable $3" ;;
    esac
    case $5,$need in
    started,*trigger | started,*pending) verb=restart ;;
    started,*) verb=start ;;
    stopped,*) verb=stop ;;
    *) verb= ;;
    esac
    [ -z "$verb" ] || within "$step_timeout" systemctl "$verb" "$3" || {
      { systemctl status --no-pager --full --lines=0 "$3"; journalctl --no-pager --lines=20 --unit "$3"; } >>"$out" 2>&1 </dev/null 9>&-
      fail "$1" "cannot $verb $3"
    }
    rm -f "$S/record/$2.pending"
    end_change "$1"
    ;;
  esac
}

reload_units() {
  [ -n "$reload" ] || return 0
  within "$step_timeout" systemctl daemon-reload || fail "$1" "systemd did not reload its units"
  reload=
}

# unit_state NAME: from the one answer of systemctl, whose parts come in the order of the operations.
unit_state() {
  u_file= u_active=inactive
  while IFS= read -r line <&5; do
    case $line in
    UnitFileState=*) u_file=${line#*=} ;;
    ActiveState=*) u_active=${line#*=} ;;
    '') break ;;
    esac
  done
  u_file=${u_file:-absent}
}

gather_unit() {
  case " $stopping " in *" $l_name "*) return ;; esac
  case $packaged_units,${l_extra#* } in
  # An older release took it for somebody else's when the package had started it.
  *"$nl$l_name$nl"*) disabling="$disabling $l_name" ;;
  *,active | *,activating | *,reloading) return ;;
  esac
  stopping="$stopping $l_name"
  case $l_extra in disabled* | absent*) disabling="$disabling $l_name" ;; esac
}

# Together: each may have clients to say goodbye to, and systemd knows which has to wait for which. A unit of ours that says
# `X-HatcheryRemoval=kill` does not get the time for it.
stop_units() {
  [ -n "$stopping" ] || return 0
  set -f
  killed=
  for name in $stopping; do ! grep -qsx X-HatcheryRemoval=kill "$R/etc/systemd/system/$name" || killed="$killed $name"; done
  # shellcheck disable=SC2086 # names of units have no spaces
  [ -z "$killed" ] || { quiet systemctl stop --no-block $killed; quiet systemctl kill --signal=KILL $killed; } || :
  # shellcheck disable=SC2086 # names of units have no spaces
  within "$step_timeout" systemctl stop $stopping || for name in $stopping; do within "$step_timeout" systemctl stop "$name" || :; done
  # shellcheck disable=SC2086
  [ -z "$disabling" ] || quiet systemctl disable --no-reload $disabling || for name in $disabling; do quiet systemctl disable --no-reload "$name" || :; done
  set +f
}

restore_unit() {
  : >"$out"
  was_file=${l_extra%% *} was_active=${l_extra#* }
  # Its file went with a package: there is nothing to enable or to start.
  case $was_file,$was_active in
  enabled*,* | *,active | *,activating | *,reloading)
    case $nl$(systemctl show -p LoadState "$l_name" 2>/dev/null </dev/null 9>&-)$nl in
    *"${nl}LoadState=not-found$nl"*) was_file=absent was_active=inactive ;;
    esac
    ;;
  esac
  case $was_file in
  enabled*) within "$step_timeout" systemctl enable "$l_name" || { stick; return; } ;;
  disabled) quiet systemctl disable "$l_name" || : ;;
  esac
  case $was_active in
  active | reloading) within "$step_timeout" systemctl restart "$l_name" || { stick "cannot start $l_name"; return; } ;;
  # It was not up then either.
  activating) quiet systemctl restart --no-block "$l_name" || : ;;
  *) quiet systemctl reset-failed "$l_name" || : ;;
  esac
  say "undone unit $l_name"
  put_back "$1"
}
