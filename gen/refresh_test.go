package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// copyProject copies what a generated package needs into a module of its own.
func copyProject(t *testing.T) (r refresher, dir string, report *bytes.Buffer) {
	dir = t.TempDir()
	files := []string{"go.mod", "go.sum", "schema/deviations.json", "schema/2025-06-18/deviations.json", "schema/2025-06-18/schema.json"}
	for _, pattern := range []string{"mcptypes/*.go", "mcptypes/codec/*.go", "mcptypes/codec/assert/*.go", "mcptypes/internal/*/*.go", "internal/outputschema/*.go", "internal/text/*.go"} {
		names, err := filepath.Glob("../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(name, "outputschema") && strings.HasSuffix(name, "_test.go") {
				continue // it has testdata
			}
			files = append(files, strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
	}
	for _, name := range files {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join("..", name)))
	}
	report = new(bytes.Buffer)
	return refresher{
		project: project{schema: filepath.Join(dir, "schema/2025-06-18/schema.json"), out: filepath.Join(dir, "mcptypes")},
		now:     time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		report:  report,
	}, dir, report
}

func writeFile(t *testing.T, name string, text []byte) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// withProse returns the project's schema with prose and a layout like upstream's.
func withProse(t *testing.T) string {
	var tree any
	if err := json.Unmarshal(readFile(t, projectSchema), &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(strip(tree), "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), `"Annotations": {`, `"Annotations": { "description": "Not our words.",`, 1)
}

func TestRefreshWithoutChange(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(withProse(t))); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	r, dir, report := copyProject(t)
	if err := r.refresh(context.Background(), server.URL+"/"+commit+"/schema/2025-06-18/schema.json"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("schema: 0\nGo API: 0\nwithout a description: 0\n", report.String()); diff != "" {
		t.Errorf("report (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(string(readFile(t, projectSchema)), string(readFile(t, r.schema))); diff != "" {
		t.Errorf("schema.json (-want +got)\n%s", diff)
	}
	source := string(readFile(t, filepath.Join(dir, "schema/2025-06-18/SOURCE")))
	for _, want := range []string{commit, "2026-11-20", server.URL} {
		if !strings.Contains(source, want) {
			t.Errorf("SOURCE lacks %s:\n%s", want, source)
		}
	}
	if err := run([]string{"-check", "-schema", r.schema, "-out", r.out}, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestHelp asks for the flags, which is no failure.
func TestHelp(t *testing.T) {
	var shown strings.Builder
	if err := run([]string{"-h"}, &shown); err != nil || !strings.Contains(shown.String(), "-schema file") {
		t.Errorf("%v, and\n%s", err, shown.String())
	}
}

func TestRefreshReportsChanges(t *testing.T) {
	tests := []struct{ old, new, want string }{
		{`"minimum": {
                    "type": "number"
                }`, `"minimum": { "type": "integer" }`,
			"schema: 1\n  ~ #/$defs/NumberSchema/properties/minimum/type \"number\" -> \"integer\"\n" +
				"Go API: 1\n  ~ NumberSchema.Minimum: *float64 minimum -> *int64 minimum\n" +
				"without a description: 0\n"},
		{`"enum": [
                        "accept",`, `"enum": [ "accept", "later",`,
			"schema: 1\n  + #/$defs/ElicitResult/properties/action/enum/* \"later\"\n" +
				"Go API: 1\n  ~ ElicitResultAction: type string, one of accept cancel decline -> type string, one of accept later cancel decline\n" +
				"without a description: 0\n"},
		{`"Role": {`, `"Zeal": { "type": "string" }, "Role": {`,
			"schema: 1\n  + #/$defs/Zeal {\"type\":\"string\"}\n" +
				"Go API: 1\n  + Zeal: type string\n" +
				"without a description: 1\n  Zeal\n"},
	}
	for _, tt := range tests {
		r, dir, report := copyProject(t)
		before := readFile(t, r.schema)
		upstream := strings.Replace(withProse(t), tt.old, tt.new, 1)
		file := filepath.Join(dir, "upstream.json")
		if err := os.WriteFile(file, []byte(upstream), 0o644); err != nil {
			t.Fatal(err)
		}
		r.dryRun = true
		if err := r.refresh(context.Background(), file); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, report.String()); diff != "" {
			t.Errorf("report (-want +got)\n%s", diff)
		}
		if !bytes.Equal(before, readFile(t, r.schema)) {
			t.Error("a dry run has written the schema")
		}
	}
}

// TestRefreshRefuses checks that a refresh changes nothing if a construct has no rule.
func TestRefreshRefuses(t *testing.T) {
	tests := []struct{ old, new, want string }{
		{`"Role": {`, `"Role": { "$dynamicRef": "#x",`, `#/definitions/Role: keyword "$dynamicRef" is not known to gen`},
		{`"format": "byte"`, `"format": "as one pleases"`, "#/definitions/AudioContent/properties/data/format: a text is left although all prose keywords were dropped"},
		{`{`, ``, "read schema: "},
	}
	for _, tt := range tests {
		r, dir, _ := copyProject(t)
		before := readFile(t, r.schema)
		file := filepath.Join(dir, "upstream.json")
		if err := os.WriteFile(file, []byte(strings.Replace(withProse(t), tt.old, tt.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.refresh(context.Background(), file); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if !bytes.Equal(before, readFile(t, r.schema)) {
			t.Error("the schema was written although the refresh failed")
		}
	}
}

// TestRefreshOfExtension refreshes the schema of an extension, which has no package of its
// own.
func TestRefreshOfExtension(t *testing.T) {
	dir := t.TempDir()
	source, schema := filepath.Join(dir, "upstream.json"), filepath.Join(dir, "2026-07-28", "tasks.json")
	ours := readFile(t, "../schema/2026-07-28/tasks.json")
	writeFile(t, source, upstream(t, "tasks"))
	writeFile(t, schema, ours)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	report := new(bytes.Buffer)
	r := refresher{project: project{schema: schema, out: filepath.Join(dir, "out")}, commit: commit, report: report}
	if err := r.refresh(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(ours), string(readFile(t, schema))); diff != "" {
		t.Errorf("tasks.json (-want +got)\n%s", diff)
	}
	if got := string(readFile(t, filepath.Join(dir, "2026-07-28", "SOURCE.tasks"))); !strings.Contains(got, "/ext-tasks/blob/"+commit+"/schema/draft/schema.json") {
		t.Errorf("SOURCE.tasks:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("an extension got a package")
	}
	if report.String() != "schema: 0\n" {
		t.Errorf("report:\n%s", report)
	}
}

// TestContributing follows the steps of CONTRIBUTING.md that need no person, with its command, to
// add a version to the package of one that has an extension and files written by hand. The new
// package needs nothing else to compile and to pass its tests.
func TestContributing(t *testing.T) {
	command := regexp.MustCompile("`go run ./gen (-schema .* -n -refresh .*)`").FindStringSubmatch(string(readFile(t, "../CONTRIBUTING.md")))
	if command == nil {
		t.Fatal("CONTRIBUTING.md has no command")
	}
	_, dir, report := modernProject(t)
	old := make(map[string][]byte)
	for _, name := range []string{"tasks.json", "SOURCE.tasks", "deviations.json"} {
		old[name] = readFile(t, "../schema/2026-07-28/"+name)
	}
	args := strings.Fields(command[1])
	writeFile(t, filepath.Join(dir, args[len(args)-1]), upstream(t, "2026-07-28"))
	t.Chdir(dir)

	if err := run(args, report); err != nil { // step 1
		t.Fatal(err)
	}
	if report.String() != "schema: 0\nGo API: 0\nwithout a description: 0\n" {
		t.Errorf("report:\n%s", report)
	}
	if _, err := os.Stat("schema/2027-01-31"); err == nil {
		t.Error("-n has written the schema")
	}
	report.Reset()
	args = slices.DeleteFunc(args, func(s string) bool { return s == "-n" })
	args = append(args, "-commit", "0123456789abcdef0123456789abcdef01234567")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod -trimpath -vet=all")
	if err := run(args, report); err != nil { // step 3, which runs the tests of the package, and vets it here
		t.Fatalf("%v\n%s", err, report)
	}
	for name, want := range old {
		if !bytes.Equal(readFile(t, filepath.Join("schema/2027-01-31", name)), want) {
			t.Errorf("%s was not copied", name)
		}
	}
	if doc := string(readFile(t, "mcptypes/v20270131/doc.go")); !strings.Contains(doc, "gen -schema ../../schema/2027-01-31/schema.json -extension ../../schema/2027-01-31/tasks.json -base ") {
		t.Errorf("doc.go:\n%s", doc)
	}
}
