# shellcheck shell=sh disable=SC2034,SC2154
# What is said of a run, and how it ends.

# To the connection, which may be gone, and to the report, which a later connection reads.
say() {
  { printf '%s\n' "$*"; printf '%s\n' "$*" >&4; } 2>/dev/null
}

# say_text TEXT WORDS: a line that ends with a length, then so many bytes: the last output and TEXT.
say_text() {
  text=$(tail -c 4000 "$out" 2>/dev/null | tr -d '\000')
  [ -z "$1" ] || text=${text:+$text$nl}$1
  shift
  say "$* ${#text}"
  say "$text"
}

# fail I [TEXT]: the operation failed, and nothing after it is begun.
fail() {
  say_text "${2:-}" failed "$1"
  # What was only going to be done is not ours: somebody else may make it before we come back.
  case $phase in
  record) for m in $made; do forget "${m#*:}"; done ;;
  change)
    # Where it fails the package manager may not have been asked yet.
    allow_starts
    for m in $made; do
      case " $tried " in
      # The package manager was asked for it: the transaction tells whether it came.
      *" ${m#*:} "*) case " $brought " in *" ${m#*:} "*) continue ;; esac ;;
      *) [ "${m%%:*}" -gt "$1" ] || continue ;;
      esac
      forget "${m#*:}"
    done
    ;;
  esac
  finish failed
}

finish() {
  say "end $1"
  case ${T:-} in "$S"/in/*) cd / && rm -rf "$T" ;; esac
  [ "$out" = /dev/null ] || rm -f "$out" "$out.idle" "$out.note"
  [ "$1" = ok ] && exit 0
  exit 1
}

# What programs print is kept in memory where possible: it has to be told also when the disk is full.
catch_output() {
  out=$S/out
  [ -n "$R" ] || [ ! -w /run ] || out=/run/hatchery.out
  : >"$out"
}
