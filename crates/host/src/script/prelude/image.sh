# shellcheck shell=sh disable=SC2034,SC2154
# Images of containers.

# image I KEY RUNTIME REFERENCES: an archive of images that came as I; references separated by spaces.
image() {
  case $phase in
  look)
    need=
    if present=$(list_images "$3"); then
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
      case $need in absent*) load "$2" || note "$2" image absent "${need#absent }" "$3" ;; *) load "$2" || note "$2" image absent "$4" "$3" ;; esac
    elif load "$2"; then
      own "$2"
    fi
    ;;
  change)
    needed "$1" || return 0
    begin_change "$1"
    # While the runtime unpacks a layer its client hears nothing: a second for each mebibyte more.
    allowed=$((step_timeout + $(stat -c %s "$T/f/$1") / 1048576))
    case $3 in
    containerd) while_alive "$allowed" ctr -n k8s.io images import "$T/f/$1" ;;
    docker) while_alive "$allowed" docker load -i "$T/f/$1" ;;
    isulad) while_alive "$allowed" isula load -i "$T/f/$1" ;;
    esac || fail "$1" "$3 did not import the images"
    present=$nl$(list_images "$3")$nl
    for ref in $4; do case $present in *"$nl$ref$nl"*) ;; *) fail "$1" "the archive does not contain $ref" ;; esac; done
    rm -f "$T/f/$1"
    end_change "$1"
    ;;
  esac
}

# Without its socket `ctr` would try for ten seconds.
containerd_listens() {
  [ -S /run/containerd/containerd.sock ]
}

list_images() {
  case $1 in
  containerd) containerd_listens && ctr -n k8s.io images ls -q ;;
  docker) docker image ls --format '{{.Repository}}:{{.Tag}}' ;;
  isulad) isula images | sed '1d;s/^\([^ ]*\)  *\([^ ]*\) .*/\1:\2/' ;;
  esac 2>/dev/null </dev/null
}

restore_image() {
  for ref in $l_name; do
    case $l_extra in
    containerd) ! containerd_listens || ctr -n k8s.io images rm "$ref" ;;
    docker) docker image rm "$ref" ;;
    isulad) isula rmi "$ref" ;;
    esac >/dev/null 2>&1 </dev/null 9>&- || :
  done
}
