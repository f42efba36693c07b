package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var roundTrips = flag.Int("roundtrips", 300, "the `number` of random round trips for each version without a package")

// versions are the official schemas. testdata has their structure, and that of the tasks
// extension, without upstream's prose.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// upstream returns the structure of an official schema.
func upstream(t testing.TB, version string) []byte {
	return unzip(t, filepath.Join("testdata", version+".schema.json.gz"))
}

func unzip(t testing.TB, name string) []byte {
	r, err := gzip.NewReader(bytes.NewReader(readFile(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestStructureIsUpstreams checks that the project's schemas differ from the official ones
// only in prose, and that testdata has no prose.
func TestStructureIsUpstreams(t *testing.T) {
	for file, version := range map[string]string{
		"2025-06-18/schema.json": "2025-06-18",
		"2026-07-28/schema.json": "2026-07-28",
		"2026-07-28/tasks.json":  "tasks",
	} {
		var ours, theirs any
		if err := json.Unmarshal(readFile(t, "../schema/"+file), &ours); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(upstream(t, version), &theirs); err != nil {
			t.Fatal(err)
		}
		if version == "tasks" { // its copies follow the core schema, see refresher.follow
			core, err := definitionsAs("$defs", readFile(t, "../schema/2026-07-28/schema.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, tree := range []any{ours, theirs} {
				_, definitions := definitionsOf(tree)
				maps.DeleteFunc(definitions, func(name string, _ any) bool { return core[name] != nil })
			}
		}
		for _, line := range diffSchemas(theirs, ours) {
			t.Errorf("%s: %s", file, line)
		}
	}
	for _, version := range append(versions, "tasks") {
		var tree any
		if err := json.Unmarshal(upstream(t, version), &tree); err != nil {
			t.Fatal(err)
		}
		if compact(strip(tree)) != compact(tree) || proseLeft(tree, "#") != "" {
			t.Errorf("%s: testdata has prose", version)
		}
	}
}

// TestOtherVersions generates packages for the schemas without a package here, and for one
// that the test makes up. Each package must compile, pass go vet, and pass the tests of the
// project's packages.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	r, dir, _ := copyProject(t)
	var packages []string
	for _, version := range []string{"2000-01-01", "2024-11-05", "2025-03-26", "2025-11-25"} {
		source := filepath.Join("testdata", version, "schema.json")
		if version != "2000-01-01" {
			source = filepath.Join(dir, version, "schema.json")
			writeFile(t, source, upstream(t, version))
		}
		pkg := "mcptypes/v" + strings.ReplaceAll(version, "-", "")
		if text, err := os.ReadFile(filepath.Join("testdata", version+".examples.ndjson.gz")); err == nil {
			writeFile(t, filepath.Join(dir, pkg, examples), text)
		}
		if err := r.refresh(context.Background(), source); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, "./"+pkg)
	}
	packages = append(packages, "./"+versionOfTomorrow(t, r, dir))
	goRun(t, dir, append(append([]string{"test", "-trimpath", "-vet=all", "-timeout", "0"}, packages...), "-roundtrips", strconv.Itoa(*roundTrips))...)
}

// versionOfTomorrow follows CONTRIBUTING.md to add a new version to the package of
// 2025-11-25, and returns the new package.
func versionOfTomorrow(t *testing.T, r refresher, dir string) (pkg string) {
	const old, version = "2025-11-25", "2026-07-28"
	source := filepath.Join(dir, version, "schema.json")
	writeFile(t, source, upstream(t, version))
	var report bytes.Buffer
	r.report = &report
	r.project = project{
		schema: filepath.Join(dir, "schema", old, "schema.json"),
		base:   r.schema,
		out:    filepath.Join(dir, "mcptypes/v20251125"),
	}
	described := strings.Replace(string(readFile(t, r.schema)), `"Icon": {`, `"Icon": { "description": "Our words.",`, 1)
	writeFile(t, r.schema, []byte(described))

	r.dryRun = true
	if err := r.refresh(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"schema: 366\n", // as many differences as upstream's own comparison would list
		"\n  + #/$defs/DiscoverRequest {",
		"\n  - #/$defs/InitializeRequest {",
		"\nGo API: ",
		"\n  + ServerDiscover: method server/discover RequestParams DiscoverResult sent by the client\n",
		"\n  - TasksResult: method tasks/result ",
		"\n  ~ CallToolRequestParams.Meta: *RequestMeta _meta -> RequestMetaObject _meta\n",
		"\nwithout a description: ",
		"\n  RequestMetaObject\n",
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(report.String(), "\n  Icon\n") {
		t.Error("an existing description is reported as missing")
	}
	if _, err := os.Stat(filepath.Join(dir, "schema", version)); err == nil {
		t.Error("a dry run has written the schema")
	}

	r.dryRun = false
	if err := r.refresh(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	pkg = "mcptypes/v" + strings.ReplaceAll(version, "-", "")
	if text := readFile(t, filepath.Join(dir, pkg, "zz_types.go")); !bytes.Contains(text, []byte("// Our words.\n")) {
		t.Error("our description is lost")
	}
	ledger := filepath.Join(dir, "schema", version, "deviations.json")
	if !bytes.Equal(readFile(t, ledger), readFile(t, "../schema/deviations.json")) {
		t.Error("the deviations were not copied")
	}
	return pkg
}

// goRun runs the go command in a module, without the network. With -trimpath it reuses
// builds from another folder.
func goRun(t *testing.T, dir string, args ...string) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%.4000s", args[0], err, out)
	}
}
