package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

var (
	roundTrips = flag.Int("roundtrips", 300, "the `number` of random round trips for each version without a package")
	whole      = flag.Bool("whole", nightly.Tests(), "generate packages for all versions without one, and run the tests of a new one")
)

// versions are the official schemas. testdata has their structure, and that of the tasks
// extension, without upstream's prose.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// upstream returns the structure of an official schema.
func upstream(t *testing.T, version string) []byte {
	return unzip(t, filepath.Join("testdata", version+".schema.json.gz"))
}

func unzip(t *testing.T, name string) []byte {
	r := must.Get(gzip.NewReader(bytes.NewReader(readFile(t, name))))(t)
	return must.Get(io.ReadAll(r))(t)
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
		must.OK(t, json.Unmarshal(readFile(t, "../schema/"+file), &ours))
		must.OK(t, json.Unmarshal(upstream(t, version), &theirs))
		if diff := cmp.Diff(theirs, strip(ours)); diff != "" {
			t.Errorf("%s (-upstream +ours)\n%s", file, diff)
		}
	}
	for _, version := range append(versions, "tasks") {
		var tree any
		must.OK(t, json.Unmarshal(upstream(t, version), &tree))
		if compact(strip(tree)) != compact(tree) || proseLeft(tree, "#") != "" {
			t.Errorf("%s: testdata has prose", version)
		}
	}
}

// TestOtherVersions generates packages for a schema with a definition for each feature, and at night for all schemas without a
// package here. Each package must compile, pass go vet, and pass the tests of the project's packages.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	dir := copyProject(t)
	args := []string{"test", "-vet=all", "-timeout", "0"}
	others := []string{"2000-01-01"}
	if *whole {
		others = append(others, "2024-11-05", "2025-03-26", "2025-11-25")
	}
	for _, version := range others {
		text, err := os.ReadFile(filepath.Join("testdata", version, "schema.json"))
		if err != nil {
			text = upstream(t, version)
		}
		folder, pkg := filepath.Join(dir, "schema", version), "mcptypes/v"+strings.ReplaceAll(version, "-", "")
		writeFile(t, filepath.Join(folder, "schema.json"), text)
		writeFile(t, filepath.Join(folder, "deviations.json"), readFile(t, "../schema/deviations.json"))
		if text, err := os.ReadFile(filepath.Join("testdata", version+".examples.ndjson.gz")); err == nil {
			writeFile(t, filepath.Join(dir, pkg, examples), text)
		}
		base := filepath.Join(dir, "schema/2025-06-18/schema.json")
		must.OK(t, run([]string{"-schema", filepath.Join(folder, "schema.json"), "-base", base, "-out", filepath.Join(dir, pkg)}, io.Discard))
		args = append(args, "./"+pkg)
	}
	goRun(t, dir, append(args, "-roundtrips", strconv.Itoa(*roundTrips))...)
}

// TestContributing adds a version with the commands of CONTRIBUTING.md. The new package compiles and, at night, passes its tests,
// and our descriptions are kept.
func TestContributing(t *testing.T) {
	t.Parallel()
	testenv.NeedsPrograms(t, "sh", "go")
	_, page, _ := strings.Cut(string(readFile(t, "../CONTRIBUTING.md")), "**A version of MCP.**")
	_, page, _ = strings.Cut(page, "```sh\n")
	commands, _, ok := strings.Cut(page, "```")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no commands")
	}
	dir := copyProject(t)
	writeFile(t, filepath.Join(dir, "upstream.json"), upstream(t, "2026-07-28"))
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
	cmd.Dir = dir
	cmd.Env = goEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s", err, out)
	}
	if diff := cmp.Diff(string(readFile(t, "../schema/2026-07-28/schema.json")), string(readFile(t, filepath.Join(dir, "schema/2027-01-31/schema.json")))); diff != "" {
		t.Errorf("the schema (-want +got)\n%s", diff)
	}
	if text := readFile(t, filepath.Join(dir, "mcptypes/v20270131/zz_methods.go")); !bytes.Contains(text, []byte(`const ProtocolVersion = "2027-01-31"`)) {
		t.Error("the package is that of another version")
	}
	how := []string{"build"}
	if *whole {
		how = []string{"test", "-vet=all"}
	}
	goRun(t, dir, append(how, "./mcptypes/v20270131")...)
}

// TestTakeRefuses checks that a schema that gen cannot read leaves the project's as it is.
func TestTakeRefuses(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{`"Role": {`, `"Role": {"$dynamicRef":"#x",`, `#/definitions/Role: no rule for the keyword "$dynamicRef"`},
		{`"format": "byte"`, `"format": "as one pleases"`, "#/definitions/AudioContent/properties/data/format: a text is left although all prose keywords were dropped"},
		{`{`, ``, "invalid character"},
	} {
		dir := t.TempDir()
		source, schema := filepath.Join(dir, "upstream.json"), filepath.Join(dir, "2025-06-18", "schema.json")
		writeFile(t, source, []byte(strings.Replace(string(readFile(t, projectSchema)), tt.old, tt.new, 1)))
		writeFile(t, schema, readFile(t, projectSchema))
		if err := run([]string{"-schema", schema, "-take", source}, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if !bytes.Equal(readFile(t, schema), readFile(t, projectSchema)) {
			t.Error("the schema was written although it was refused")
		}
	}
}

// TestMissing checks that a package is called as its folder, and that one which lacks what is written by hand is not written.
func TestMissing(t *testing.T) {
	testenv.NeedsUnix(t, "folders for temporary files are on the same drive")
	out := filepath.Join(t.TempDir(), "mcptypes", "next")
	args := []string{"-schema", "../schema/2026-07-28/schema.json", "-out", out}
	lacks := out + " lacks Base64, DecodeError, ElicitValue, NewMethod, NewNotification, NewUnionMethod, ProgressToken, RequestID: "
	if err := run(args, io.Discard); err == nil || !strings.HasPrefix(err.Error(), lacks) {
		t.Errorf("got %v, want %s", err, lacks)
	}
	if written, err := filepath.Glob(filepath.Join(out, "*")); len(written) > 0 || err != nil {
		t.Errorf("it has written %v, %v", written, err)
	}
	for _, file := range []string{"id.go", "value.go", "method.go"} { // without DecodeError
		writeFile(t, filepath.Join(out, file), bytes.Replace(readFile(t, filepath.Join("../mcptypes", file)), []byte("package mcptypes"), []byte("package next"), 1))
	}
	if err := run(args, io.Discard); err == nil || !strings.HasPrefix(err.Error(), out+" lacks DecodeError: ") {
		t.Errorf("got %v, want that it lacks DecodeError", err)
	}
	must.OK(t, run(append(args, "-base", projectSchema), io.Discard))
	for _, name := range []string{"zz_types.go", "zz_schema_test.go"} {
		if text := readFile(t, filepath.Join(out, name)); !bytes.Contains(text, []byte("\npackage next")) {
			t.Errorf("%s: %.200s", name, text)
		}
	}
}

// TestExitCode tells a command line that is wrong from a schema that has no rule. To ask for the flags is no failure.
func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0}, {[]string{"-nonsense"}, 2}, {[]string{"surplus"}, 2}, {[]string{"-schema", "missing.json"}, 1},
	} {
		if got := exitCode(run(tt.args, io.Discard)); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.args, got, tt.want)
		}
	}
}

// copyProject copies what a generated package needs into a module of its own.
func copyProject(t *testing.T) (dir string) {
	dir = t.TempDir()
	files := []string{"go.mod", "go.sum"}
	for _, pattern := range []string{
		"gen/*.go", "gen/codec.txt", "schema/*.json", "schema/*/*", "mcptypes/*.go", "mcptypes/modern/doc.go", "mcptypes/modern/testdata/*.gz",
		"mcptypes/internal/*/*.go", "internal/outputschema/*.go", "internal/text/*.go",
	} {
		names, err := filepath.Glob("../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "mcptypes/") {
				files = append(files, strings.TrimPrefix(filepath.ToSlash(name), "../"))
			}
		}
	}
	for _, name := range files {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join("..", name)))
	}
	return dir
}

func writeFile(t *testing.T, name string, text []byte) {
	must.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.OK(t, os.WriteFile(name, text, 0o644))
}

// goEnviron is the environment of the go command in a module of its own, without the network. Programs are built with -trimpath
// only if this one is, so that the standard library is not compiled once more.
func goEnviron() []string {
	flags := "GOFLAGS=-mod=mod"
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-trimpath", Value: "true"}) {
		flags += " -trimpath"
	}
	return append(os.Environ(), flags, "GOPROXY=off")
}

// goRun runs the go command in a module.
func goRun(t *testing.T, dir string, args ...string) {
	testenv.NeedsPrograms(t, "go")
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, goEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%.4000s", args[0], err, out)
	}
}
