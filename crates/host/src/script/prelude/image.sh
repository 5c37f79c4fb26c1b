# shellcheck shell=sh disable=SC2034,SC2154
# Images of containers.

# image I KEY STORE REFERENCES LIST LOAD REMOVE: an archive of images that came as I; references separated by spaces. LIST
# prints the names of all images, LOAD loads an archive, REMOVE removes an image: each a text for `sh -c`.
image() {
  case $phase in
  look)
    need=
    if present=$(list_images "$5"); then
      present=$nl$present$nl
      for ref in $4; do case $present in *"$nl$ref$nl"*) ;; *) need="${need:-absent} $ref" ;; esac; done
    else
      need=runtime-does-not-answer
    fi
    needs "$1" "$need"
    ;;
  want)
    needed "$1" || return 0
    [ -f "$T/f/$1" ] || { say "wanting $1"; wanting=1; }
    ;;
  record)
    if needed "$1"; then
      own "$2"
      if ! load "$2"; then
        printf '%s\n' "$7" >"$S/record/$2.undo"
        news="$news $2.undo"
        case $need in absent*) note "$2" image absent "${need#absent }" "$3" ;; *) note "$2" image absent "$4" "$3" ;; esac
      fi
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    # While the runtime unpacks a layer its client hears nothing: a second for each mebibyte more.
    allowed=$((step_timeout + $(stat -c %s "$T/f/$1") / 1048576))
    while_alive "$allowed" sh -c "$6" hatchery "$T/f/$1" || fail "$1" "$3 did not import the images"
    present=$nl$(list_images "$5")$nl
    for ref in $4; do case $present in *"$nl$ref$nl"*) ;; *) fail "$1" "the archive does not contain $ref" ;; esac; done
    rm -f "$T/f/$1"
    end_change "$1"
    ;;
  esac
}

list_images() {
  sh -c "$1" hatchery 2>/dev/null </dev/null 9>&-
}

# restore_image KEY
restore_image() {
  if [ -f "$S/record/$1.undo" ]; then body=$(cat "$S/record/$1.undo"); else earlier_restore "$l_extra"; fi
  for ref in $l_name; do
    sh -c "$body" hatchery "$ref" >/dev/null 2>&1 </dev/null 9>&- || :
  done
}

# earlier_restore STORE: what an earlier release has recorded names the store and not how it removes an image.
earlier_restore() {
  case $1 in
  containerd) body='[ ! -S /run/containerd/containerd.sock ] || ctr -n k8s.io images rm "$1"' ;;
  docker) body='docker image rm "$1"' ;;
  isulad) body='isula rmi "$1"' ;;
  *) body=: ;;
  esac
}
