package main

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

var ofField = flag.Bool("field", false, "compile the types of schemas by others, and compare them with a validator")

// TestField generates types from the schemas of other projects, and from those of the installed
// Codex that CODEX_BIN names. With -field it compiles them and compares -roundtrips random
// instances with a validator; that takes minutes.
func TestField(t *testing.T) {
	schemas := map[string]func(*testing.T) []byte{
		"acp":                   func(t *testing.T) []byte { return unzip(t, "testdata/field/acp.json.gz") },
		"exttasks":              func(t *testing.T) []byte { return unzip(t, "testdata/field/ext-tasks.json.gz") },
		"extapps":               func(t *testing.T) []byte { return complete(t, unzip(t, "testdata/field/ext-apps.json.gz")) },
		"appserverexperimental": func(t *testing.T) []byte { return unzip(t, "testdata/field/app-server.json.gz") },
	}
	if *ofField {
		schemas["appserver"] = func(t *testing.T) []byte { return appServer(t) }
		schemas["appserverexperimental"] = func(t *testing.T) []byte { return appServer(t, "--experimental") }
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		t.Run(name, func(t *testing.T) {
			text := schemas[name](t)
			p := project{schema: name + ".json", out: filepath.Join(projectPackage, name)}
			if *ofField {
				compareWithValidator(t, map[string][]byte{name: text}, *roundTrips)
			} else if _, err := p.generate(text); err != nil {
				t.Error(err)
			}
		})
	}
}

// complete returns a schema with all definitions in one container. Those of ext-apps are written as
// if each was a file of its own, so that a validator does not find what they refer to.
func complete(t *testing.T, text []byte) []byte {
	_, _, definitions, err := readDefinitions(text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(compact(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}))
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

// TestOtherModule generates a package in the module of somebody else, with the command that
// docs/embedding.md names, and runs a program that uses it.
func TestOtherModule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/shop\n\ngo 1.26\n\nrequire github.com/codexmcp/codexmcp v0.0.0\n\nreplace github.com/codexmcp/codexmcp => " + root + "\n",
		"order.json": `{"$defs": {
			"Order": {"type": "object", "properties": {"item": {"$ref": "#/$defs/Item"}, "note": {"type": ["string", "null"]}}, "required": ["item"]},
			"Item": {"oneOf": [
				{"type": "object", "properties": {"kind": {"const": "book"}, "isbn": {"type": "string", "pattern": "^[0-9]+$"}}, "required": ["kind", "isbn"]},
				{"type": "object", "properties": {"kind": {"const": "pen"}}, "required": ["kind"]}]}}}`,
		"main.go": `package main

import (
	"fmt"

	"example.org/shop/order"
)

func main() {
	var o order.Order
	fmt.Println(order.Decode([]byte(` + "`" + `{"item":{"kind":"book","isbn":"123"},"note":null}` + "`" + `), &o))
	fmt.Println(o.Item.(*order.ItemBook).Isbn)
	text, err := order.Encode(o)
	fmt.Println(string(text), err)
	fmt.Println(order.DecodeStrict([]byte(` + "`" + `{"item":{"kind":"book","isbn":"x"}}` + "`" + `), &o))
}
`,
	} {
		writeFile(t, filepath.Join(dir, name), []byte(text))
	}
	writeFile(t, filepath.Join(dir, "go.sum"), readFile(t, "../go.sum"))
	goRun(t, dir, "run", "-trimpath", "github.com/codexmcp/codexmcp/gen", "-schema", "order.json", "-out", "order")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-trimpath", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	const want = `<nil>
123
{"item":{"kind":"book","isbn":"123"},"note":null} <nil>
order: /item/isbn: 'x' does not match pattern '^[0-9]+$'
`
	if err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}
