package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// Each file is one task: the prompt, then these files.
//
//	module     a Go module: path, version and sum, as in go.sum
//	packages   the packages of it that are tested; ./... without it
//	plant/F    a fault of the module's file F: a part, a line ====, and what replaces the part
//	check/F    tests that judge the work, which the model does not see
//	solution   a patch that solves the task
//	wrong      a patch that does not, although it may look so
//
// All other files are the repository of a task without a module.
//
//go:embed tasks/*.txtar
var files embed.FS

type task struct {
	name, prompt    string
	module          module
	packages        []string
	repository      []txtar.File
	plant, check    []txtar.File
	solution, wrong string
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
		t, err := parse(strings.TrimSuffix(entry.Name(), ".txtar"), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if only == "" || only == t.name {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("there is no task %q", only)
	}
	return tasks, nil
}

func parse(name string, data []byte) (task, error) {
	archive := txtar.Parse(data)
	t := task{name: name, prompt: strings.TrimSpace(string(archive.Comment)), packages: []string{"./..."}}
	for _, f := range archive.Files {
		folder, rest, _ := strings.Cut(f.Name, "/")
		switch {
		case f.Name == "module":
			words := strings.Fields(string(f.Data))
			if len(words) != 3 {
				return task{}, errors.New("module: want a path, a version and a sum")
			}
			t.module = module{words[0], words[1], words[2]}
		case f.Name == "packages":
			t.packages = strings.Fields(string(f.Data))
		case f.Name == "solution":
			t.solution = string(f.Data)
		case f.Name == "wrong":
			t.wrong = string(f.Data)
		case folder == "plant":
			t.plant = append(t.plant, txtar.File{Name: rest, Data: f.Data})
		case folder == "check":
			t.check = append(t.check, txtar.File{Name: rest, Data: f.Data})
		default:
			t.repository = append(t.repository, f)
		}
	}
	return t, nil
}

// lay writes the repository of the task into dir, as the model finds it.
func (t task) lay(ctx context.Context, dir string) error {
	if t.module.path != "" {
		from, err := t.module.download(ctx)
		if err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			return err
		}
	}
	for _, f := range t.plant {
		if err := plant(filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data)); err != nil {
			return fmt.Errorf("plant %s: %w", f.Name, err)
		}
	}
	return write(dir, t.repository)
}

// plant replaces the part of a file that stands above the line ==== by the one below.
func plant(file, fault string) error {
	part, instead, ok := strings.Cut(fault, "====\n")
	if !ok {
		return errors.New("no line ====")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(data), part); n != 1 {
		return fmt.Errorf("the part is there %d times", n)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(data), part, instead, 1)), 0o644)
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

// judge writes the repository's tests and the task's own over the model's files, and runs them. The
// error has their output.
func (t task) judge(ctx context.Context, dir string) error {
	tests, err := t.tests(ctx)
	if err != nil {
		return err
	}
	if err := write(dir, append(tests, t.check...)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-timeout=5m"}, t.packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), offline...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// tests returns the tests that the repository had at the beginning, and their files.
func (t task) tests(ctx context.Context) ([]txtar.File, error) {
	var tests []txtar.File
	for _, f := range t.repository {
		if strings.HasSuffix(f.Name, "_test.go") {
			tests = append(tests, f)
		}
	}
	if t.module.path == "" {
		return tests, nil
	}
	from, err := t.module.download(ctx)
	if err != nil {
		return nil, err
	}
	module := os.DirFS(from)
	err = fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") &&
			!strings.Contains("/"+name, "/testdata/") {
			return err
		}
		data, err := fs.ReadFile(module, name)
		tests = append(tests, txtar.File{Name: name, Data: data})
		return err
	})
	return tests, err
}
