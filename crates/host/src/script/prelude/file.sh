# shellcheck shell=sh disable=SC2034,SC2154
# Files, links, and files that must not be there.

# file I KEY PATH UP MODE OWNER GROUP SIZE HASH
file() {
  case $phase in
  look)
    need=
    if [ "$st_n" != "$R$3" ]; then
      need=absent
    else
      case $st_f in
      8???)
        if [ "$st_s" != "$8" ]; then
          need=content
        else
          is=
          [ -n "$verify" ] || [ ! -f "$S/record/$2.is" ] || IFS= read -r is <"$S/record/$2.is"
          if [ "${is#* }" = "$st_s $st_day $st_time $st_zone $st_i" ]; then
            [ "${is%% *}" = "$9" ] || need=content
          else
            need=hash
            eval "path_$1=\$R\$3"
            rehash="$rehash \"\$path_$1\""
          fi
        fi
        eval "looks_$1='$st_a $st_u $st_g'"
        ids "$6" "$7"
        [ "$st_a $st_u $st_g" = "$5 $w_uid $w_gid" ] || eval "mode_$1='mode $st_a $st_u $st_g'"
        [ -n "$need" ] || eval "need=\${mode_$1:-}"
        ;;
      *) need=kind ;;
      esac
      next
    fi
    needs "$1" "$need"
    ;;
  hash)
    needed "$1" && [ "$need" = hash ] || return 0
    if [ "$sum_path" = "$R$3" ]; then
      if [ "$sum" = "$9" ]; then eval "need=\${mode_$1:-}"; else need=content; fi
      next_sum
    else
      need=content
    fi
    needs "$1" "$need"
    if [ -z "$need" ]; then
      eval "settle_$1=1"
      [ -n "$verify" ] || [ ! -f "$S/record/$2" ] || touched=1
    fi
    ;;
  want)
    needed "$1" || return 0
    case $need in absent | content | kind) [ -f "$T/f/$1" ] || { say "wanting $1"; wanting=1; } ;; esac
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" file "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    case $need in
    mode*)
      cp "$R$3" "$T/f/$1" 2>"$out" && chown "$6:$7" "$T/f/$1" 2>"$out" && chmod "$5" "$T/f/$1" 2>"$out" ||
        fail "$1" "cannot set owner and mode of $R$3"
      ;;
    *)
      # A user whom only a package of this task brought was unknown when the contents arrived.
      [ "$6$7" = rootroot ] || { chown "$6:$7" "$T/f/$1" && chmod "$5" "$T/f/$1"; } 2>"$out" || fail "$1" "cannot give $R$3 to $6:$7"
      ;;
    esac
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/f/$1" "$R$3" "$2" "$device"
    case $3 in */systemd/*) reload=1 ;; esac
    eval "path_$1=\$R\$3 settle_$1=1"
    end_change "$1"
    ;;
  collect)
    eval "settled=\${settle_$1:-}"
    [ -z "$settled" ] || changed="$changed \"\$path_$1\""
    ;;
  settle)
    eval "settled=\${settle_$1:-}"
    [ -n "$settled" ] || return 0
    if [ "$st_n" = "$R$3" ]; then
      [ "$st_s" = "$8" ] || fail "$1" "$R$3 has $st_s bytes instead of $8"
      ids "$6" "$7"
      [ "$st_a $st_u $st_g" = "$5 $w_uid $w_gid" ] || fail "$1" "$R$3 is $st_a $st_u:$st_g instead of $5 $6:$7; is there such a user and group?"
      [ ! -f "$S/record/$2" ] || printf '%s\n' "$9 $st_s $st_day $st_time $st_zone $st_i" >"$S/record/$2.is"
      next
    fi
    ;;
  esac
}

# link I KEY PATH UP TARGET
link() {
  case $phase in
  look)
    need=absent
    if [ "$st_n" = "$R$3" ]; then
      case $st_f in
      a???) [ "$(readlink "$R$3")" = "$5" ] && need= || need=content ;;
      *) need=kind ;;
      esac
      next
    fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" link "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    rm -f "$T/link" && ln -s "$5" "$T/link" 2>"$out" || fail "$1" "cannot make a link"
    eval "device=\${dev_$4:-?}"
    put "$1" "$T/link" "$R$3" "$2" "$device"
    case $3 in */systemd/*) reload=1 ;; esac
    end_change "$1"
    ;;
  esac
}

# absent I KEY PATH
absent() {
  case $phase in
  look)
    need=
    if [ "$st_n" = "$R$3" ]; then need=there; next; fi
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then keep "$1" "$2" absent "$R$3" "$3"; elif load "$2"; then own "$2"; fi
    ;;
  change)
    if ! needed "$1"; then
      # A package of this task may have brought it.
      [ -n "$packaged" ] && { [ -e "$R$3" ] || [ -h "$R$3" ]; } || return 0
      own "$2"
      load "$2" || note "$2" absent absent "$3" -
      flush_records
    fi
    begin_change "$1"
    rm -f "$R$3" 2>"$out" || fail "$1" "cannot remove $R$3"
    case $3 in */systemd/*) reload=1 ;; esac
    end_change "$1"
    ;;
  esac
}

remove_files() {
  set --
  for key in $gone; do ! load "$key" || set -- "$@" "$R$l_name" "$R${l_name%/*}/.hatchery-$key"; done
  rm -f "$@" 2>/dev/null
  for key in $gone; do
    load "$key" || continue
    if [ -e "$R$l_name" ] || [ -h "$R$l_name" ]; then
      rm -f "$R$l_name" 2>"$out" || { stick "cannot put $l_name back"; continue; }
    fi
    case $l_name in */systemd/*) reload=1 ;; esac
    say "undone $l_kind $l_name"
    put_back "$key"
  done
}

# A package that is purged takes its configuration with it, also where somebody had written it before the package came.
restore_again() {
  for r_key in $later; do
    ! load "$r_key" || [ -e "$R$l_name" ] || { restore_path "$r_key" && find_manager && per_format drop_moved "$R$l_name"; } || { stick "cannot put $l_name back"; continue; }
    forget "$r_key"
  done
}
