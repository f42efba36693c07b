package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var roundTrips = flag.Int("roundtrips", 300, "the `number` of random round trips for each version without a package")

// versions are the official schemas. Their structure, without upstream's prose,
// is in testdata, and so is that of the tasks extension.
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

// TestStructureIsUpstreams checks that nothing but prose tells the project's
// schemas from the official ones, of which no prose is in testdata.
func TestStructureIsUpstreams(t *testing.T) {
	for file, version := range map[string]string{
		"2025-06-18/schema.json": "2025-06-18",
	} {
		var ours, theirs any
		if err := json.Unmarshal(readFile(t, "../schema/"+file), &ours); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(upstream(t, version), &theirs); err != nil {
			t.Fatal(err)
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

// TestOtherVersions takes in the schemas that have no package here, and one of
// the test's own: each gets a package that compiles, passes go vet, and passes
// the tests that the packages of the project pass.
func TestOtherVersions(t *testing.T) {
	r, dir, _ := copyProject(t)
	var packages []string
	for _, version := range []string{"2000-01-01", "2024-11-05", "2025-03-26", "2025-11-25"} {
		source := filepath.Join("testdata", version, "schema.json")
		if version != "2000-01-01" {
			source = filepath.Join(dir, version, "schema.json")
			writeFile(t, source, upstream(t, version))
		}
		writeFile(t, filepath.Join(dir, "schema", version, "deviations.json"), readFile(t, "testdata/deviations.json"))
		pkg := "mcptypes/v" + strings.ReplaceAll(version, "-", "")
		if text, err := os.ReadFile(filepath.Join("testdata", version+".examples.ndjson.gz")); err == nil {
			writeFile(t, filepath.Join(dir, pkg, examples), text)
		}
		if err := r.refresh(context.Background(), source); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, "./"+pkg)
	}
	goRun(t, dir, append([]string{"vet", "-trimpath"}, packages...)...)
	goRun(t, dir, append(append([]string{"test", "-trimpath", "-vet=off"}, packages...), "-roundtrips", strconv.Itoa(*roundTrips))...)
}

// goRun runs the go command in a module, without the network. With -trimpath it
// finds what it has built in another folder.
func goRun(t *testing.T, dir string, args ...string) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%.4000s", args[0], err, out)
	}
}
