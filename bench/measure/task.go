package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// Each file is one task: the prompt, then the files of the repository, the tests that judge
// the work, under check/, and a patch that solves the task.
//
//go:embed tasks/*.txtar
var files embed.FS

type task struct {
	name, prompt string
	repository   []txtar.File
	check        []txtar.File
	solution     string
}

// load reads all tasks, or the one with that name.
func load(only string) ([]task, error) {
	names, err := files.ReadDir("tasks")
	if err != nil {
		return nil, err
	}
	var tasks []task
	for _, entry := range names {
		data, err := files.ReadFile(path.Join("tasks", entry.Name()))
		if err != nil {
			return nil, err
		}
		t := parse(strings.TrimSuffix(entry.Name(), ".txtar"), data)
		if only == "" || only == t.name {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("there is no task %q", only)
	}
	return tasks, nil
}

func parse(name string, data []byte) task {
	archive := txtar.Parse(data)
	t := task{name: name, prompt: strings.TrimSpace(string(archive.Comment))}
	for _, f := range archive.Files {
		rest, isCheck := strings.CutPrefix(f.Name, "check/")
		switch {
		case f.Name == "solution":
			t.solution = string(f.Data)
		case isCheck:
			t.check = append(t.check, txtar.File{Name: rest, Data: f.Data})
		default:
			t.repository = append(t.repository, f)
		}
	}
	return t
}

func write(dir string, all []txtar.File) error {
	for _, f := range all {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// judge writes the task's tests over the model's files and runs all tests. The error has
// their output.
func (t task) judge(ctx context.Context, dir string) error {
	for _, f := range t.repository {
		if strings.HasSuffix(f.Name, "_test.go") {
			if err := write(dir, []txtar.File{f}); err != nil {
				return err
			}
		}
	}
	if err := write(dir, t.check); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
