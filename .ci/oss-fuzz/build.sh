#!/bin/bash -eu
# Builds every fuzz test of the module, with its committed inputs, for OSS-Fuzz. The project's files there are copies of
# those in this folder.
module=github.com/codexmcp/codexmcp
git grep -lE '^func Fuzz' -- '*_test.go' | while read -r file; do
  folder=$(dirname "$file")
  ! git ls-files --error-unmatch "$folder/go.mod" >/dev/null 2>&1 || continue # a module of its own
  for name in $(sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' "$file"); do
    target=$(tr '/.-' '___' <<<"$folder")_$name
    compile_native_go_fuzzer "$module/$folder" "$name" "$target"
    [[ ! -d $folder/testdata/fuzz/$name ]] || zip -qj "$OUT/${target}_seed_corpus.zip" "$folder/testdata/fuzz/$name"/*
  done
done
