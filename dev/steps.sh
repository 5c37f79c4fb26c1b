# What the scripts in this folder share: the environment, and saying what happens.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
export HATCHERY_CACHE=${HATCHERY_CACHE:-$HOME/.cache/hatchery}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HATCHERY_CACHE/target}

title() { printf '\n=== %s\n' "$*"; }
stop() { printf 'error: %s\n  %s\n' "$1" "$2" >&2; exit "${3:-2}"; }

need_cargo() {
  command -v cargo >/dev/null || stop "there is no 'cargo' command" "install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or later (rustup.rs), then run this again"
}

# The program under test, built as the tests build it.
build_hatchery() {
  need_cargo
  cargo build --quiet --locked --package hatchery-cli
  hatchery=$CARGO_TARGET_DIR/debug/hatchery
}
