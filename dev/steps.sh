# What the scripts in this folder share: the environment, and saying what happens.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
export HATCHERY_CACHE=${HATCHERY_CACHE:-$HOME/.cache/hatchery}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HATCHERY_CACHE/target}

title() { printf '\n=== %s\n' "$*"; }
stop() { printf 'error: %s\n  %s\n' "$1" "$2" >&2; exit "${3:-2}"; }

# What compilers and scripts here ask for beside Rust and Go; root on Debian gets it installed.
need_tools() {
  local missing=()
  command -v cargo >/dev/null || stop "there is no 'cargo' command" "install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or later (rustup.rs), then run this again"
  command -v cc >/dev/null || missing+=(gcc libc6-dev)
  command -v curl >/dev/null || missing+=(curl ca-certificates)
  command -v ssh >/dev/null || missing+=(openssh-client)
  command -v busybox >/dev/null || missing+=(busybox)
  command -v dash >/dev/null || missing+=(dash)
  command -v readelf >/dev/null || missing+=(binutils)
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}"
    apt-get update -q >/dev/null
    apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
  else
    stop "missing on this machine: ${missing[*]}" "install them, then run this again"
  fi
}

# need_cargo_tool NAME VERSION [OPTION...]: a tool of the pinned version in the PATH, compiled once into the cache.
need_cargo_tool() {
  local name=$1 version=$2 tools=$HATCHERY_CACHE/tools
  shift 2
  export PATH=$tools/bin:$PATH
  [ "$("$tools/bin/$name" --version 2>/dev/null)" != "$name $version" ] || return 0
  echo "compiling $name $version, once"
  # Its own directory: the options of this build are not ours.
  CARGO_TARGET_DIR=$tools/target cargo install --quiet --locked --root "$tools" "$name@$version" "$@" || return
  rm -rf "$tools/target"
}

# All clones share one target directory, so that a new one need not compile everything again. Our
# own crates are compiled anew when another clone built last: Cargo would judge them by the age of
# their files, which says nothing between two clones.
claim_target() {
  local mark=$CARGO_TARGET_DIR/last-clone crates
  [ "$(cat "$mark" 2>/dev/null)" != "$top" ] || return 0
  crates=$(sed -n 's/^name = "\(hatchery-.*\)"/--package=\1/p' crates/*/Cargo.toml)
  if [ -d "$CARGO_TARGET_DIR" ]; then
    cargo clean --quiet --locked $crates &&
      cargo clean --quiet --locked --release $crates &&
      cargo clean --quiet --locked --release --target "$(uname -m)-unknown-linux-gnu" $crates || return
  fi
  mkdir -p "$CARGO_TARGET_DIR"
  echo "$top" >"$mark"
}

# The program under test, built as the tests build it.
build_hatchery() {
  need_tools
  claim_target
  cargo build --quiet --locked --package hatchery-cli
  hatchery=$CARGO_TARGET_DIR/debug/hatchery
}

# The files of the repository, committed or not yet; none at all is an error.
repository_files() {
  git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
  done | grep . || stop "git tells of no file in $top" "run this in a clone that belongs to you ('git status' says more)" 1
}
