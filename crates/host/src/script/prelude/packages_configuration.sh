# shellcheck shell=sh disable=SC2034,SC2154
# Configuration of packages that was there before them.

# note_earlier NAMES: which configuration of these packages was there before them. What is still to be put back was too.
note_earlier() {
  [ $# != 0 ] && [ -f "$S/etc.list" ] || return 0
  per_format configuration "$@" >"$S/conffiles"
  if [ -s "$S/conffiles" ]; then
    {
      [ ! -f "$S/earlier" ] || while IFS= read -r p; do
        [ ! -f "$S/kept/$p" ] && grep -qxF -e "$p" "$S/conffiles" || printf '%s\n' "$p"
      done <"$S/earlier"
      grep -xF -f "$S/conffiles" "$S/etc.list"
    } | sort -u >"$S/earlier.new"
    flush "$S/earlier.new" && mv -f "$S/earlier.new" "$S/earlier"
    grep -xF -f "$S/conffiles" "$S/etc.list" | while IFS= read -r p; do per_format stay_with_earlier "$p"; done
  fi
  rm -f "$S/conffiles"
}

# keep_earlier, put_earlier_back: packages that are purged take such files with them. rpm moves them away, over what an
# earlier package left under that name.
keep_earlier() {
  [ -s "$S/earlier" ] || return 0
  while IFS= read -r p; do
    [ -f "$R/$p" ] && [ ! -e "$S/kept/$p" ] || continue
    # The file itself comes last: with it everything is there.
    mkdir -p "$S/kept/${p%/*}" && { [ ! -f "$R/$p.rpmsave" ] || copy_file "$R/$p.rpmsave" "$S/kept/$p.rpmsave"; } && copy_file "$R/$p" "$S/kept/$p" || return
  done <"$S/earlier" 2>"$out"
}
put_earlier_back() {
  [ -d "$S/kept" ] || return 0
  find_manager
  while IFS= read -r p; do
    [ -f "$S/kept/$p" ] || continue
    [ -e "$R/$p" ] || [ -h "$R/$p" ] || { make_above "$R/$p" && copy_file "$S/kept/$p" "$R/$p"; } || { l_kind=file l_name=/$p; return 1; }
    if [ ! -f "$S/kept/$p.rpmsave" ]; then
      per_format drop_moved "$R/$p"
    elif ! cmp -s "$S/kept/$p.rpmsave" "$R/$p.rpmsave"; then
      copy_file "$S/kept/$p.rpmsave" "$R/$p.rpmsave" || { l_kind=file l_name=/$p.rpmsave; return 1; }
    fi
  done <"$S/earlier" 2>"$out"
  rm -rf "$S/kept"
}
