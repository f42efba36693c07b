// Package packaging_test has the tests of what is in this folder and of the release that .ci/release makes of it.
package packaging_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/mod/modfile"
)

const module = "github.com/codexmcp/codexmcp"

// root makes a test run in the root of the repository. In TestMain go test would not know of it, and take an old result for
// the new one.
func root(t *testing.T) {
	t.Helper()
	t.Chdir("..")
}

func TestMain(m *testing.M) {
	testenv.Forget()
	os.Exit(m.Run())
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(path...)))(t)
	return string(b)
}

func modFile(t *testing.T, file string) *modfile.File {
	t.Helper()
	mod := must.Get(modfile.Parse(file, []byte(read(t, file)), nil))(t)
	return mod
}

// documented returns the only command of a page that begins with the words.
func documented(t *testing.T, page, words string) string {
	t.Helper()
	text := strings.Join(strings.Fields(read(t, page)), " ")
	found := regexp.MustCompile(regexp.QuoteMeta(words)+"[^\\s`]+").FindAllString(text, -1)
	if len(found) != 1 {
		t.Fatalf("%s has %d commands %q: %q", page, len(found), words, found)
	}
	return found[0]
}

func readJSON(t *testing.T, file string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, file)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// validate checks v against a schema of testdata/registry, including formats.
func validate(t *testing.T, schema string, v any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s := must.Get(c.Compile("packaging/testdata/registry/" + schema))(t)
	must.Check(t, s.Validate(v))
}
