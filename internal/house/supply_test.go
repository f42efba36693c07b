package house_test

import (
	"encoding/json"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestWorkflows checks that a workflow cannot run other code than what was reviewed: actions are
// named by their commits, no checkout leaves its token behind, a job gets only the rights that
// it names, and no workflow reads what strangers write. The npm packages run nothing when they
// are installed, and Go is newer than the known flaws of os.Root.
func TestWorkflows(t *testing.T) {
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(workflows) < 3 {
		t.Fatalf("%d workflows, %v", len(workflows), err)
	}
	uses := regexp.MustCompile(`uses: *(.*)`)
	pinned := regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	versions := map[string]string{}
	for _, file := range workflows {
		text := read(t, file)
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %q is not named by its commit and version", file, m[1])
			}
			action, version, _ := strings.Cut(m[1], "@")
			repo := strings.Join(strings.SplitN(action, "/", 3)[:2], "/")
			if versions[repo] == "" {
				versions[repo] = version
			}
			if versions[repo] != version {
				t.Errorf("%s: %s has two versions", file, repo)
			}
		}
		for _, step := range strings.Split(text, "      - ")[1:] {
			if strings.HasPrefix(step, "uses: actions/checkout@") && !strings.Contains(step, "persist-credentials: false") {
				t.Errorf("%s: a checkout keeps its token", file)
			}
		}
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: jobs may do more than read unless they say so", file)
		}
		for _, word := range []string{"pull_request_target", "workflow_run", "issue_comment", "github.event.issue", "github.event.comment", "github.head_ref", "github.event.pull_request.title"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %s lets strangers choose", file, word)
			}
		}
	}
	var npm map[string]any
	if err := json.Unmarshal([]byte(read(t, "packaging/npm/package.json")), &npm); err != nil || npm["scripts"] != nil {
		t.Errorf("packaging/npm/package.json runs scripts: %v, %v", npm["scripts"], err)
	}
	if mod := modFile(t, "go.mod"); !regexp.MustCompile(`^1\.(2[6-9]|[3-9]\d)`).MatchString(mod.Go.Version) {
		t.Errorf("go.mod accepts Go %s", mod.Go.Version)
	}
}

func modFile(t *testing.T, file string) *modfile.File {
	t.Helper()
	mod, err := modfile.Parse(file, []byte(read(t, file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

// licences tell the licences of this project's dependencies apart by words that only one has.
var licences = []struct{ id, words string }{
	{"Apache-2.0", "Apache License"},
	{"BSD-3-Clause", "Neither the name of"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"ISC", "Permission to use, copy, modify, and"},
}

// TestDependencies checks that every direct dependency of every module has a line in
// testdata/dependencies.txt with its licence and what it is for, and that the licence is that of its
// text.
func TestDependencies(t *testing.T) {
	why := map[string][]string{} // licence and purpose
	for line := range strings.Lines(read(t, "internal/house/testdata/dependencies.txt")) {
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 || why[parts[0]] != nil {
			t.Fatalf("dependencies.txt: %q", line)
		}
		why[parts[0]] = parts[1:]
	}
	direct := map[string]string{} // by module, the folder of a module that needs it
	for _, file := range files(t, ".mod") {
		for _, r := range modFile(t, file).Require {
			if !r.Indirect && r.Mod.Path != module && !strings.HasPrefix(r.Mod.Path, module+"/") && direct[r.Mod.Path] == "" {
				direct[r.Mod.Path] = path.Dir(file)
			}
		}
	}
	dirs := moduleDirs(t, direct)
	for m := range direct {
		if why[m] == nil {
			t.Errorf("dependencies.txt does not say what %s is for", m)
			continue
		}
		if got := licence(t, m, dirs[m]); got != why[m][0] && got != "" {
			t.Errorf("%s has the licence %s, not %s", m, got, why[m][0])
		}
	}
	for m := range why {
		if direct[m] == "" {
			t.Errorf("dependencies.txt has %s, which nothing imports", m)
		}
	}
}

// moduleDirs returns the folders of modules, "" if one is not on this machine. direct has the folder of a module that needs it.
func moduleDirs(t *testing.T, direct map[string]string) map[string]string {
	t.Helper()
	by := map[string][]string{}
	for m, folder := range direct {
		by[folder] = append(by[folder], m)
	}
	dirs := map[string]string{}
	for folder, modules := range by {
		cmd := exec.Command("go", append([]string{"list", "-mod=readonly", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules...)...)
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		for line := range strings.Lines(string(out)) {
			m, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			dirs[m] = dir
		}
	}
	return dirs
}

// licence returns the licence of a module's text, "" if the module is not on this machine.
func licence(t *testing.T, m, dir string) string {
	t.Helper()
	if dir == "" {
		return ""
	}
	texts, err := filepath.Glob(filepath.Join(dir, "LICEN[SC]E*"))
	if len(texts) == 0 && err == nil {
		texts, err = filepath.Glob(filepath.Join(dir, "*.go")) // the files name it when the text is above the module
	}
	if err != nil || len(texts) == 0 {
		t.Fatalf("%s has no licence, %v", m, err)
	}
	text := read(t, texts[0])
	for _, l := range licences {
		if strings.Contains(strings.Join(strings.Fields(text), " "), l.words) {
			return l.id
		}
	}
	return "unknown"
}
