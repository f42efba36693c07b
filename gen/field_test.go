package main

import (
	"flag"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var ofField = flag.Bool("field", false, "compile the types of schemas by others, and compare them with a validator")

// TestField generates types from the schemas of other projects, and from those of the installed
// Codex that CODEX_BIN names. With -field it compiles them and compares -roundtrips random
// instances with a validator; that takes minutes.
func TestField(t *testing.T) {
	t.Parallel()
	schemas := make(map[string]func(*testing.T) []byte)
	files, err := filepath.Glob("testdata/field/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json.gz")
		schemas[strings.ReplaceAll(name, "-", "")] = func(t *testing.T) []byte {
			if name == "ext-apps" {
				return complete(t, unzip(t, file))
			}
			return unzip(t, file)
		}
	}
	if *ofField {
		schemas["appserverstable"] = func(t *testing.T) []byte { return appServer(t) }
		schemas["appserver"] = func(t *testing.T) []byte { return appServer(t, "--experimental") }
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		t.Run(name, func(t *testing.T) {
			text := schemas[name](t)
			p := project{schema: name + ".json", out: filepath.Join(projectPackage, name)}
			if *ofField {
				compareWithValidator(t, map[string][]byte{name: text}, *roundTrips)
				return
			}
			files, err := p.unformatted(text)
			if err != nil {
				t.Error(err)
			}
			for file, text := range files { // what is no Go cannot be formatted
				if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// complete returns a schema with all definitions in one container. Those of ext-apps are written as
// if each was a file of its own, so that a validator does not find what they refer to.
func complete(t *testing.T, text []byte) []byte {
	h, err := readDefinitions(false, text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(compact(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": h.definitions}))
}

// appServer returns the schema that the installed Codex writes.
func appServer(t *testing.T, args ...string) []byte {
	codex := os.Getenv("CODEX_BIN")
	if codex == "" {
		t.Skip("CODEX_BIN does not name a codex program")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), codex, append([]string{"app-server", "generate-json-schema", "--out", dir}, args...)...)
	cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readFile(t, filepath.Join(dir, "codex_app_server_protocol.schemas.json"))
}
