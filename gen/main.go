// Gen makes Go types from a schema of the Model Context Protocol.
//
//	go run ./gen                     write the package mcptypes (what go generate runs)
//	go run ./gen -check              write nothing, fail when a file would change
//	go run ./gen -refresh FILE|URL   take a new schema from upstream
//
// A refresh drops upstream's prose, keeps our descriptions, prints what changes
// in the schema and in the Go API, records where the schema came from, and
// generates the package. With -n it only prints. Another version of the
// protocol goes into folders of its own, schema/<version> and
// mcptypes/v<version>. A keyword or construct that the generator has no rule
// for is an error that names its place.
//
// The exceptions to the generator's rules are the tables of tables.go, a reason
// to each row.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
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
	source := flags.String("refresh", "", "take the schema from upstream's `file or URL`")
	commit := flags.String("commit", "", "upstream's `commit`, where the source's address does not name it")
	dryRun := flags.Bool("n", false, "with -refresh: report only, write nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *source != "" {
		r := refresher{*schema, *out, *commit, *dryRun, time.Now(), os.Stdout}
		return r.refresh(context.Background(), *source)
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
	m, err := modelOf(text)
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
