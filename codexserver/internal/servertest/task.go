package servertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	gocmp "github.com/google/go-cmp/cmp"
)

// Task is a turn of a coding task, and what each engine asked in it.
type Task struct {
	Name    string `json:"name"`
	Policy  string `json:"policy"`
	Sandbox string `json:"sandbox"`
	// GoCache puts Go's cache where commands may write.
	GoCache bool              `json:"goCache,omitempty"`
	Files   map[string]string `json:"files"`
	// Steps are what the model does: a patch, a line for bash, or "outside: " and a line that
	// the model wants to run outside the sandbox.
	Steps []string `json:"steps"`
	// Asked is by the engine: native, codex.
	Asked map[string]Asked `json:"asked"`
}

// Asked has the questions of a task, with the rules that they offered.
type Asked struct {
	// Once are the questions of a person who approves each, Always those of one who accepts each rule that is offered.
	Once   []string `json:"once"`
	Always []string `json:"always"`
}

// TaskFolders are the folders of a task: its repository, Go's cache, the home directory, that
// of Codex, and the programs. Commands may write the first two.
type TaskFolders struct {
	Repo, Cache, Home, Codex, Bin string
}

const taskFile = "../internal/servertest/tasks.json" // in the tests of an engine

// Tasks returns the recorded tasks.
func Tasks(t testing.TB) []Task {
	t.Helper()
	text := must.Get(os.ReadFile(taskFile))(t)
	var all []Task
	must.OK(t, json.Unmarshal(text, &all))
	return all
}

// standIn takes the place of programs. It writes their cache, as they do; the sandbox stops it if
// that is in the home directory.
const standIn = `#!/bin/sh
case "${0##*/} $1" in
go\ *) cache=${GOCACHE:-$HOME/.cache/go-build} ;;
"npm ci" | "npm install") cache=$HOME/.npm ;;
*) exit 0 ;;
esac
mkdir -p "$cache" && touch "$cache/$$"
`

// NewTaskFolders makes folders for a task. Only git and the programs of every system are real in one.
func NewTaskFolders(t testing.TB) TaskFolders {
	t.Helper()
	outside := boxtest.Outside(t)
	in := func(name string) string { return filepath.Join(outside, name) }
	f := TaskFolders{Repo: in("repo"), Cache: t.TempDir(), Home: in("home"), Codex: in("codex"), Bin: in("bin")}
	for name := range strings.FieldsSeq(`actionlint cargo curl docker gh go gofmt make npm npx pip pytest python3 rg ` +
		`ruff shellcheck ssh sudo wget`) {
		writeFile(t, filepath.Join(f.Bin, name), standIn, 0o700)
	}
	writeFile(t, filepath.Join(f.Home, ".bash_profile"), "PATH="+f.Bin+":/usr/bin:/bin\n", 0o600)
	return f
}

func writeFile(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode))
}

// repoConfig is git's configuration of a task's repository.
const repoConfig = `[user]
	name = Ann
	email = ann@example.com
[remote "origin"]
	url = https://127.0.0.1:9/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
`

// Make makes the repository of the task, and the configuration from one without tables for commands.
func (task *Task) Make(t testing.TB, f TaskFolders, config string) {
	t.Helper()
	for name, text := range task.Files {
		writeFile(t, filepath.Join(f.Repo, name), text, 0o600)
	}
	writeFile(t, filepath.Join(f.Repo, ".git", "config"), repoConfig, 0o600)
	for _, line := range []string{"init -q -b main --template=", "add .", "commit -q -m first"} {
		Git(t, f.Repo, strings.Fields(line)...)
	}
	if task.GoCache {
		// The folder for temporary files is not writable where the user's home is in it.
		config += fmt.Sprintf("\n[shell_environment_policy.set]\nGOCACHE = %q\nGOTMPDIR = "+
			"%[1]q\n\n[sandbox_workspace_write]\nwritable_roots = [%[1]q]\n", f.Cache)
	}
	writeFile(t, filepath.Join(f.Codex, "config.toml"), config, 0o600)
}

// Show returns a question without the names of folders that differ from run to run.
func (f TaskFolders) Show(what string) string {
	return strings.NewReplacer("'"+f.Repo+"'", "the repository", f.Repo+"/", "", f.Repo, "the repository", f.Home,
		"HOME", f.Bin, "BIN", f.Cache, "CACHE").Replace(what)
}

// RecordTasks compares what an engine asked in the tasks with the record, or writes it. It
// leaves out tasks without a question.
func RecordTasks(t *testing.T, engine string, asked []Asked, update bool) {
	t.Helper()
	all := Tasks(t)
	for i := range all {
		if len(asked[i].Once) == 0 {
			continue
		}
		if update {
			if all[i].Asked == nil {
				all[i].Asked = map[string]Asked{}
			}
			all[i].Asked[engine] = asked[i]
		} else if diff := gocmp.Diff(all[i].Asked[engine], asked[i]); diff != "" {
			t.Errorf("%s: the questions differ (-recorded +asked), -update records them:\n%s", all[i].Name, diff)
		}
	}
	if update {
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		must.OK(t, e.Encode(all))
		must.OK(t, os.WriteFile(taskFile, []byte(text.String()), 0o644))
	}
}
