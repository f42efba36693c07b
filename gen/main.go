// Gen makes Go types from a schema of the Model Context Protocol.
//
//	go run ./gen                     write the package mcptypes (what go generate runs)
//	go run ./gen -check              write nothing, fail when a file would change
//	go run ./gen -refresh FILE|URL   show what a new schema would change
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	schema := flags.String("schema", "schema/2025-06-18/schema.json", "the schema `file`, in a folder named after its version")
	out := flags.String("out", "mcptypes", "the package's `folder`")
	check := flags.Bool("check", false, "write nothing, fail when a file would change")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*schema)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	files, err := generate(text, filepath.Base(filepath.Dir(*schema)), filepath.Base(dir))
	if err != nil {
		return err
	}
	return write(dir, files, *check)
}

// generate returns the generated files of a package by name.
func generate(text []byte, version, pkg string) (map[string][]byte, error) {
	schema, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	m, err := buildModel(schema)
	if err != nil {
		return nil, err
	}
	m.version = version
	m.digest = fmt.Sprintf("%x", sha256.Sum256(text))
	return emit(m, pkg)
}

// write replaces the files in dir that differ.
func write(dir string, files map[string][]byte, check bool) error {
	var changed []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if check {
			changed = append(changed, fmt.Errorf("%s is not up to date", path))
			continue
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return errors.Join(changed...)
}
