#!/usr/bin/env bash
# Keeps the inputs of a target: `pack` writes corpus/TARGET into seeds/TARGET.hex.zst, one input a line in hexadecimal digits
# and all lines compressed with zstd; `unpack` does the reverse.
set -euo pipefail
cd "$(dirname "$0")"
target=$2
packed=seeds/$target.hex.zst
folder=corpus/$target

case $1 in
  pack)
    for input in "$folder"/*; do
      od -An -v -tx1 "$input" | tr -d ' \n'
      echo
    done | LC_ALL=C sort -u >"seeds/$target.hex"
    # From a file and not from the pipe: with the size known, a reader needs little memory.
    zstd -q -f --ultra -22 --rm "seeds/$target.hex"
    ;;
  unpack)
    mkdir -p "$folder"
    number=0
    while read -r line; do
      # shellcheck disable=SC2059 # the line is the format: each byte becomes \xNN
      printf "$(sed 's/../\\x&/g' <<<"$line")" >"$folder/kept-$((number += 1))"
    done < <(zstd -q -d -c "$packed")
    ;;
esac
