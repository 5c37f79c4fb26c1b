# shellcheck shell=sh disable=SC2034,SC2154
# What the scripts of packages leave beside their files.

# System users and groups, and directories with mode and owner, in places that scripts of packages make use of. Their
# state before a transaction is in $S/surroundings, a name that stays: a run of an earlier release may have left it.
list_users_and_directories() {
  for kind in passwd group; do
    [ ! -f "$R/etc/$kind" ] || while IFS=: read -r name _ id _; do
      case $id in '' | *[!0-9]*) ;; *) [ "$id" -ge 1000 ] || printf '%s %s\n' "$kind" "$name" ;; esac
    done <"$R/etc/$kind"
  done
  set --
  for above in /var /var/lib /var/log /var/cache; do
    for place in "$R$above"/*; do [ ! -d "$place" ] || [ -h "$place" ] || set -- "$@" "$place"; done
  done
  [ $# = 0 ] || stat -c 'looks %a %u %g %n' "$@" || :
}

# note_script_effects NAMES: what the scripts of these packages leave is not taken away with them: undo does that, when all
# packages are gone. After a run that died nobody knows what others have made since. Others may be at work at the same
# time without a lock, so only what the packages name counts.
note_script_effects() {
  [ "$phase" = change ] && [ -f "$S/surroundings" ] || return 0
  { [ ! -f "$S/aftermath" ] || cat "$S/aftermath"; } >"$S/aftermath.new"
  texts_of "$@" >"$S/texts" 2>/dev/null
  list_users_and_directories 2>/dev/null | grep -vxF -f "$S/surroundings" | while IFS=' ' read -r kind mode uid gid path; do
    case $kind in looks) name=${path##*/} ;; *) name=$mode ;; esac
    grep -qwF -e "$name" "$S/texts" || continue
    case $kind in
    passwd | group) printf '%s\n' "$kind $mode" ;;
    looks)
      before=$(grep -e '^looks [0-9]* [0-9]* [0-9]* /' "$S/surroundings" | while IFS=' ' read -r _ b_mode b_uid b_gid b_path; do
        [ "$b_path" != "$path" ] || printf '%s' "$b_mode $b_uid $b_gid"
      done)
      if [ -z "$before" ]; then
        find "$path" -xdev 2>/dev/null | head -n 1000 | sed 's/^/path /'
      elif ! grep -qe "^looks [0-9]* [0-9]* [0-9]* $path\$" "$S/aftermath.new"; then
        printf '%s\n' "looks $before $path"
      fi
      ;;
    esac
  done >"$S/aftermath.more"
  cat "$S/aftermath.more" >>"$S/aftermath.new"
  rm -f "$S/aftermath.more" "$S/texts"
  if [ -s "$S/aftermath.new" ]; then flush "$S/aftermath.new" && mv -f "$S/aftermath.new" "$S/aftermath"; else rm -f "$S/aftermath.new"; fi
}

# texts_of NAMES: where packages name what they make beside their files.
texts_of() {
  per_format scripts "$@"
  per_format files "$@" | grep -E '/(sysusers|tmpfiles)\.d/' | while IFS= read -r f; do cat "$R$f"; done
}

# After the last package of ours is gone; what another package has by now stays.
clear_aftermath() {
  [ -s "$S/aftermath" ] || return 0
  find_manager
  sort -ru "$S/aftermath" | while IFS=' ' read -r kind name uid gid path; do
    case $kind in
    path)
      name=${name}${uid:+ $uid}${gid:+ $gid}${path:+ $path}
      per_format has_file "$name" >/dev/null 2>&1 && continue
      if [ -d "$name" ] && [ ! -h "$name" ]; then rmdir "$name" 2>/dev/null; else rm -f "$name"; fi
      ;;
    passwd)
      grep -q "^$name:" "$R/etc/passwd" || continue
      group_id "$name" "$R/etc/group"
      quiet userdel "$name" || :
      grep -qxF -e "group $name" "$S/aftermath" || remake_group "$name" || :
      ;;
    group) ! grep -q "^$name:" "$R/etc/group" || quiet groupdel "$name" || : ;;
    looks)
      [ -d "$path" ] || mkdir "$path" 2>/dev/null || continue
      chown "$uid:$gid" "$path" 2>/dev/null && chmod "00$name" "$path" 2>/dev/null
      ;;
    esac
  done
  rm -f "$S/aftermath"
}
