// Gen makes the Go types of the packages mcptypes and mcptypes/modern from the schemas of the Model
// Context Protocol, its versions and its tasks extension.
//
//	go run ./gen                 write the package mcptypes
//	go run ./gen -check          write nothing, fail if a file would change
//	go run ./gen -take FILE      take the schema from upstream's file
//
// The flags -schema and -out name another schema and package, which has the name of its folder. -extension names the schema of an
// extension; its definitions are added to those of the schema. -base names the schema of the base
// package, which must be in the folder above -out: types that are equal in both become aliases. Each
// package has a go:generate directive with the flags in use.
//
// -take drops upstream's prose and keeps our descriptions of the definitions that were there. The
// difference to the old schema is what git diff shows, and that in the Go API as well, after the next
// run. CONTRIBUTING.md says how a new version is added.
//
// A construct without a rule is an error with its JSON pointer, and so is a package that would not compile because it
// lacks what is written by hand; nothing is written then. The exceptions to the rules are in tables.go, each with its
// reason.
//
// The exit code is 0 if the files are there, 1 if gen refuses the schema, and 2 for a wrong command line.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
	}
	os.Exit(exitCode(err))
}

// usageError is the error of a command line that is wrong.
type usageError struct{ error }

// exitCode returns 0 if the files are there, 2 for a wrong command line, and 1 for any other error.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}

func run(args []string, report io.Writer) error {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	p := project{schema: "schema/2025-06-18/schema.json", out: "mcptypes"}
	flags.StringVar(&p.schema, "schema", p.schema, "the schema `file`, in a folder named after its version")
	flags.StringVar(&p.out, "out", p.out, "the package's `folder`")
	flags.StringVar(&p.base, "base", "", "the schema `file` of the package in the folder above, which shares its types")
	flags.Func("extension", "the schema `file` of an extension", func(file string) error {
		p.extensions = append(p.extensions, file)
		return nil
	})
	check := flags.Bool("check", false, "write nothing, fail if a file would change")
	source := flags.String("take", "", "take the schema from upstream's `file`, and write nothing else")
	flags.SetOutput(report)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("want flags only, found %q", flags.Arg(0))}
	}
	if *source != "" {
		return take(p.schema, *source)
	}
	text, err := os.ReadFile(p.schema)
	if err != nil {
		return err
	}
	files, err := p.generate(text)
	if err != nil {
		return err
	}
	if err := missing(p.out, files); err != nil {
		return err
	}
	return write(p.out, files, *check)
}

// project is a package and what it is made from.
type project struct {
	schema     string   // the schema file
	extensions []string // the schema files of its extensions
	base       string   // the schema file of the base package, "" if this is the base package
	out        string   // the package's folder
}

// model returns the model of the schema in text and of the project's extensions.
func (p project) model(text []byte) (*model, error) {
	var extensions [][]byte
	for _, name := range p.extensions {
		more, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		extensions = append(extensions, more)
	}
	return modelOf(text, extensions...)
}

// modelOf returns the model of a schema and its extensions.
func modelOf(text []byte, extensions ...[]byte) (*model, error) {
	schema, err := parseSchema(text, extensions...)
	if err != nil {
		return nil, err
	}
	return buildModel(schema)
}

// generate returns the generated files by name, made from the text of the schema.
func (p project) generate(text []byte) (map[string][]byte, error) {
	files, err := p.unformatted(text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name], err = format.Source(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, err
}

// unformatted is generate without the last step, which takes most of the time.
func (p project) unformatted(text []byte) (map[string][]byte, error) {
	m, err := p.model(text)
	if err != nil {
		return nil, err
	}
	m.version = filepath.Base(filepath.Dir(p.schema))
	m.from = fmt.Sprintf("schema/%s/%s (sha256 %.4x)", m.version, filepath.Base(p.schema), sha256.Sum256(text))
	out, err := filepath.Abs(p.out)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{p.schema}, p.extensions...) {
		if name, err = filepath.Abs(name); err != nil {
			return nil, err
		}
		if name, err = filepath.Rel(out, name); err != nil {
			return nil, err
		}
		m.files = append(m.files, filepath.ToSlash(name))
	}
	pkg := basePath
	if name := filepath.Base(out); name != path.Base(basePath) {
		pkg += "/" + name
	}
	if p.base == "" {
		return emit(m, pkg, nil)
	}
	baseText, err := os.ReadFile(p.base)
	if err != nil {
		return nil, err
	}
	baseModel, err := modelOf(baseText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.base, err)
	}
	return emit(m, pkg, baseModel)
}

// examples is the file of a package with examples for its tests.
const examples = "testdata/spec-examples.ndjson.gz"

// write writes the files that differ from those in dir. With check it returns an error for
// each of them instead.
func write(dir string, files map[string][]byte, check bool) error {
	var changed []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name)
		old, err := os.ReadFile(file)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if check {
			changed = append(changed, fmt.Errorf("%s is not up to date: go generate ./... updates it", file))
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	return errors.Join(changed...)
}
