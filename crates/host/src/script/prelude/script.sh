# shellcheck shell=sh disable=SC2034,SC2154
# Scripts.

# script I KEY NAME SECONDS CHECK DO UNDO: each a text for `sh -c`; CHECK succeeds when there is nothing to do.
script() {
  case $phase in
  look)
    need=
    within "$4" sh -c "$5" hatchery || need=undone
    needs "$1" "$need"
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        printf '%s\n' "$7" >"$S/record/$2.undo"
        news="$news $2.undo"
        note "$2" script undone "$3" "$4"
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    within "$4" sh -c "$6" hatchery || fail "$1"
    [ ! -s "$out" ] || say_text '' said "$1"
    end_change "$1"
    ;;
  esac
}
