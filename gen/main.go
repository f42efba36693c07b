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
	"path"
	"path/filepath"
	"slices"
	"strings"
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
	files, err := generate(text, *schema, *out)
	if err != nil {
		return err
	}
	return write(*out, files, *check)
}

// generate returns by name the generated files of the package in the folder
// out, made from the text of the file schema.
func generate(text []byte, schema, out string) (map[string][]byte, error) {
	m, err := modelOf(text)
	if err != nil {
		return nil, err
	}
	m.version = filepath.Base(filepath.Dir(schema))
	m.digest = fmt.Sprintf("%x", sha256.Sum256(text))
	if schema, err = filepath.Abs(schema); err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if m.file, err = filepath.Rel(out, schema); err != nil {
		return nil, err
	}
	m.file = filepath.ToSlash(m.file)
	pkg, err := importPath(out)
	if err != nil {
		return nil, err
	}
	return emit(m, pkg)
}

// importPath returns the import path of the package in dir, which lies in a
// module.
func importPath(dir string) (string, error) {
	for root, rest := dir, ""; ; root, rest = filepath.Dir(root), path.Join(filepath.Base(root), rest) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		switch {
		case err == nil:
			for line := range strings.Lines(string(text)) {
				if module, ok := strings.CutPrefix(line, "module "); ok {
					return path.Join(strings.TrimSpace(module), rest), nil
				}
			}
			return "", fmt.Errorf("%s/go.mod names no module", root)
		case filepath.Dir(root) == root:
			return "", fmt.Errorf("%s lies in no module", dir)
		}
	}
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
