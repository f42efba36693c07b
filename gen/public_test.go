package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var publicFolder = flag.String("public", "", "a `folder` for the schemas of testdata/public.txt, which are fetched from npm and the Go proxy")

// published is a schema that a package of npm or a Go module carries.
type published struct{ source, file string }

// readPublished returns the schemas of testdata/public.txt.
func readPublished(t *testing.T) (list []published) {
	source := ""
	for line := range strings.Lines(string(readFile(t, "testdata/public.txt"))) {
		line = strings.TrimSuffix(line, "\n")
		file, ok := strings.CutPrefix(line, "  ")
		if !ok {
			source = line
			continue
		}
		name, _, _ := strings.Cut(file, ": ")
		list = append(list, published{source, name})
	}
	return list
}

// TestPublic makes the types of the schemas in testdata/public.txt, or refuses them with the place and the reason that
// stand there. Then two validators judge up to -roundtrips valid instances of each schema that is made, and as many that
// are changed in one place. Without -public only the list is read: TestField has some of the schemas. A difference needs a rule in testdata/field.json, or in testdata/ajv.json if it is ajv's.
func TestPublic(t *testing.T) {
	list := readPublished(t)
	if *publicFolder == "" { // without the network
		if len(list) < 500 {
			t.Errorf("the list has %d schemas", len(list))
		}
		return
	}
	folders := make(map[string]string)
	for _, p := range list {
		if folders[p.source] == "" {
			folders[p.source] = fetched(t, p.source)
		}
	}
	schemas := make(map[string][]byte)
	names := make(map[string]string)
	table, last := new(strings.Builder), ""
	for i, p := range list {
		text := readFile(t, filepath.Join(folders[p.source], filepath.FromSlash(p.file)))
		name := fmt.Sprintf("p%03d", i)
		verdict := "ok"
		if _, err := modelFrom(false, text); err != nil {
			verdict = err.Error()
			if !regexp.MustCompile(`^#[^ ]*`).MatchString(verdict) {
				t.Errorf("%s %s: %s: there is no place", p.source, p.file, verdict)
			}
		} else {
			schemas[name], names[name] = text, p.source+" "+p.file
		}
		if p.source != last {
			fmt.Fprintln(table, p.source)
		}
		last = p.source
		fmt.Fprintf(table, "  %s: %.200s\n", p.file, verdict)
	}
	if *update {
		writeFile(t, "testdata/public.txt", []byte(table.String()))
	} else if diff := cmp.Diff(string(readFile(t, "testdata/public.txt")), table.String()); diff != "" {
		t.Errorf("testdata/public.txt (-want +got); -update rewrites it\n%s", diff)
	}
	if len(schemas) < 400 {
		t.Errorf("%d schemas are made, want 400", len(schemas))
	}
	judged := filepath.Join(t.TempDir(), "judged.ndjson")
	compareAll(t, schemas, *roundTrips, judged)
	compareWithAjv(t, schemas, names, judged)
}

// fetched returns the folder of a package of npm, or of a Go module, by its name and version.
func fetched(t *testing.T, source string) string {
	kind, name, _ := strings.Cut(source, " ")
	if kind == "go" {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		out, err := cmd.Output()
		var module struct{ Dir string }
		if err := errors.Join(err, json.Unmarshal(out, &module)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return module.Dir
	}
	dir := filepath.Join(*publicFolder, strings.NewReplacer("/", "+", "@", "_").Replace(name))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	pack := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", pack, name).CombinedOutput(); err != nil {
		t.Fatalf("npm pack %s: %v\n%s", name, err, out)
	}
	archives, err := filepath.Glob(filepath.Join(pack, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("npm pack %s: %q %v", name, archives, err)
	}
	if err := unpack(archives[0], dir+".part"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".part", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unpack writes the files of an archive of npm that may be schemas into a folder.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return os.MkdirAll(dir, 0o755)
		} else if err != nil {
			return err
		}
		_, name, _ := strings.Cut(h.Name, "/") // package/
		if h.Typeflag != tar.TypeReg || filepath.Ext(name) != ".json" || !filepath.IsLocal(name) {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
}

// compareWithAjv compares the verdicts about the instances in a file with those of ajv.
func compareWithAjv(t *testing.T, schemas map[string][]byte, names map[string]string, judged string) {
	dir := filepath.Join(*publicFolder, "ajv")
	for _, name := range []string{"package.json", "package-lock.json", "judge.mjs"} {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join("testdata/ajv", name)))
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	folder := t.TempDir()
	for name, text := range schemas {
		writeFile(t, filepath.Join(folder, name+".json"), text)
	}
	cmd = exec.CommandContext(t.Context(), "node", filepath.Join(dir, "judge.mjs"), folder, judged)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge.mjs: %v\n%.4000s", err, &problems)
	}
	var ledger []struct{ Schema, Reason string }
	if err := json.Unmarshal(readFile(t, "testdata/ajv.json"), &ledger); err != nil {
		t.Fatal(err)
	}
	used := make([]int, len(ledger))
	counts := make(map[string]int)
	for line := range bytes.Lines(out) {
		var d struct {
			Schema, Pointer, Why string
			Instance             string
			Accepted             bool
			Total                int
		}
		if err := json.Unmarshal(line, &d); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		if d.Total > 0 {
			t.Logf("%d instances judged by ajv", d.Total)
			continue
		}
		i := slices.IndexFunc(ledger, func(row struct{ Schema, Reason string }) bool { // by package, file and definition
			return regexp.MustCompile(row.Schema).MatchString(names[d.Schema] + d.Pointer)
		})
		if i >= 0 {
			used[i]++
			continue
		}
		if counts[d.Schema]++; counts[d.Schema] <= 3 {
			t.Errorf("%s %s%s: accepted here: %v, and ajv differs: %s: %.300s", d.Schema, names[d.Schema], d.Pointer, d.Accepted, d.Why, d.Instance)
		}
	}
	for i, n := range used {
		if row := ledger[i]; n == 0 || row.Reason == "" {
			t.Errorf("testdata/ajv.json: row %q excuses %d differences, reason: %q", row.Schema, n, row.Reason)
		}
	}
}
