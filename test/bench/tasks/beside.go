package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"
)

// agent is a program that works on a task, and the names of its tools.
type agent struct {
	name    string
	command func(home, dir, baseURL, prompt string) *exec.Cmd
	shell   func(line string) providertest.ToolCall
	read    func(path string) providertest.ToolCall
	write   func(path, content string) providertest.ToolCall
}

type object = map[string]any

// codexMCP is codex-mcp ask with the native engine.
func codexMCP(program string) agent {
	return agent{
		name: "codex-mcp",
		command: func(home, dir, baseURL, prompt string) *exec.Cmd {
			cmd := exec.Command(program, "ask", "--engine", "native", "-a", "never", "-s", "workspace-write", "-C", dir,
				"-c", "model=mock-model", "-c", "model_provider=mock", "-c", "model_providers.mock.wire_api=chat",
				"-c", "model_providers.mock.base_url="+baseURL, prompt)
			cmd.Env = []string{"CODEX_HOME=" + home}
			return cmd
		},
		shell: func(line string) providertest.ToolCall {
			return providertest.Tool("", "shell", object{"command": []string{"bash", "-lc", line}})
		},
		read: func(path string) providertest.ToolCall { return providertest.Tool("", "read", object{"path": path}) },
		write: func(path, content string) providertest.ToolCall {
			return providertest.Tool("", "write", object{"path": path, "content": content})
		},
	}
}

// opencode is opencode run, with its own tools and without updates, plugins and language servers.
func opencode(program string) agent {
	return agent{
		name: "opencode",
		command: func(home, dir, baseURL, prompt string) *exec.Cmd {
			config, _ := json.Marshal(object{ // strings and numbers
				"autoupdate": false, "share": "disabled", "model": "mock/mock-model", "small_model": "mock/mock-model", "permission": "allow",
				"provider": object{"mock": object{
					"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": baseURL, "apiKey": "none"},
					"models": object{"mock-model": object{"tool_call": true, "limit": object{"context": 400000, "output": 10000}}},
				}},
			})
			cmd := exec.Command(program, "run", "-m", "mock/mock-model", prompt)
			cmd.Env = []string{
				"OPENCODE_CONFIG_CONTENT=" + string(config), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1",
			}
			return cmd
		},
		shell: func(line string) providertest.ToolCall {
			return providertest.Tool("", "bash", object{"command": line, "description": line})
		},
		read: func(path string) providertest.ToolCall {
			return providertest.Tool("", "read", object{"filePath": path})
		},
		write: func(path, content string) providertest.ToolCall {
			return providertest.Tool("", "write", object{"filePath": path, "content": content})
		},
	}
}

// beside plays the solutions of the tasks in two agents, in turns, and prints what each needed. The
// scripts are the same: list the folder, read each file that changes, write it, each in a request
// of its own. The judge checks that the files arrived.
func beside(ctx context.Context, tasks []task, agents [2]agent, out io.Writer) error {
	dir, err := os.MkdirTemp("", "tasks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all [2][]cost
	for n, t := range slices.Concat(tasks[:1], tasks) { // the first time only warms up
		changes, err := t.changes(ctx, filepath.Join(dir, fmt.Sprint(n)))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		for i, a := range agents {
			c, err := a.work(ctx, t, changes, filepath.Join(dir, a.name), filepath.Join(dir, fmt.Sprint(n, a.name)))
			if err != nil {
				return fmt.Errorf("%s of %s: %w", t.name, a.name, err)
			}
			if n > 0 {
				all[i] = append(all[i], c)
			}
		}
	}
	fmt.Fprintf(out, "%-37s %10s %10s %6s\n", fmt.Sprintf("%d tasks", len(tasks)), agents[0].name, agents[1].name, "ratio")
	for _, f := range figures {
		var values [2]float64
		for i := range all {
			values[i] = f.of(all[i])
		}
		fmt.Fprintf(out, "%-37s %10.*f %10.*f %6.2f\n", f.name, f.digits, values[0], f.digits, values[1], values[1]/values[0])
	}
	return nil
}

// cost is what an agent needed for a task.
type cost struct {
	requests      int
	tools, prompt int // bytes of the first request that offers tools: the tools, and the rest
	sent          int // bytes of all requests
	wall, cpu     time.Duration
	memory        float64 // the peak, in MiB
}

// perToken is how many bytes are taken for a token.
const perToken = 4

var figures = []struct {
	name   string
	digits int
	of     func([]cost) float64
}{
	{"requests, all tasks", 0, sum(func(c cost) float64 { return float64(c.requests) })},
	{"tokens of the tools, median", 0, median(func(c cost) float64 { return float64(c.tools) / perToken })},
	{"tokens of prompt and task, median", 0, median(func(c cost) float64 { return float64(c.prompt) / perToken })},
	{"tokens sent, all tasks", 0, sum(func(c cost) float64 { return float64(c.sent) / perToken })},
	{"wall time, median, s", 2, median(func(c cost) float64 { return c.wall.Seconds() })},
	{"CPU time, median, s", 2, median(func(c cost) float64 { return c.cpu.Seconds() })},
	{"peak memory, median, MiB", 0, median(func(c cost) float64 { return c.memory })},
}

func sum(of func(cost) float64) func([]cost) float64 {
	return func(all []cost) (total float64) {
		for _, c := range all {
			total += of(c)
		}
		return total
	}
}

func median(of func(cost) float64) func([]cost) float64 {
	return func(all []cost) float64 {
		sorted := slices.SortedFunc(slices.Values(all), func(a, b cost) int { return cmp.Compare(of(a), of(b)) })
		return of(sorted[len(sorted)/2])
	}
}

// change is what the solution does to a file.
type change struct {
	path    string
	before  bool   // it is there at the beginning
	content string // "" removes it
}

// changes plays the solution and returns what it did.
func (t task) changes(ctx context.Context, dir string) ([]change, error) {
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "run")
	if err := t.lay(ctx, before); err != nil {
		return nil, err
	}
	if r, err := play(ctx, &options{scripted: true, timeout: time.Minute}, t, after, io.Discard); err != nil || !r.passed {
		return nil, errors.Join(errors.New("the solution does not pass"), err)
	}
	after = filepath.Join(after, "work")
	var all []change
	err := filepath.WalkDir(after, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(after, file)
		if err != nil || name == ".cache" {
			return errors.Join(err, fs.SkipDir)
		}
		if d.IsDir() || slices.ContainsFunc(t.check, func(f txtar.File) bool { return f.Name == filepath.ToSlash(name) }) {
			return nil
		}
		now, err := os.ReadFile(file)
		was, err2 := os.ReadFile(filepath.Join(before, name))
		if err == nil && (err2 != nil || !bytes.Equal(now, was)) {
			all = append(all, change{name, err2 == nil, string(now)})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, filepath.WalkDir(before, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(before, file)
		if _, gone := os.Stat(filepath.Join(after, name)); gone != nil {
			all = append(all, change{name, true, ""})
		}
		return err
	})
}

// script returns the calls that make the changes in dir.
func (a agent) script(changes []change, dir string) []providertest.ToolCall {
	calls := []providertest.ToolCall{a.shell("ls")}
	for _, c := range changes {
		if c.before {
			calls = append(calls, a.read(filepath.Join(dir, c.path)))
		}
	}
	for _, c := range changes {
		if c.content == "" {
			calls = append(calls, a.shell("rm "+filepath.ToSlash(c.path)))
		} else {
			calls = append(calls, a.write(filepath.Join(dir, c.path), c.content))
		}
	}
	return calls
}

// work runs the agent on the task in dir.
func (a agent) work(ctx context.Context, t task, changes []change, home, dir string) (cost, error) {
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "tmp"), 0o700), t.lay(ctx, dir)); err != nil {
		return cost{}, err
	}
	calls := a.script(changes, dir)
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		done := len(r.ToolOutputs())
		switch {
		case !bytes.Contains(r.Body, []byte(`"tools"`)):
			return providertest.Say("A title") // a request on the side
		case done < len(calls):
			call := calls[done]
			call.ID = fmt.Sprint("call_", done)
			return providertest.Call(call)
		}
		return providertest.Say("Done.")
	}})
	defer model.Close()
	cmd := a.command(home, dir, model.BaseURL(), t.prompt)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+filepath.Join(home, "tmp"), "TERM=dumb", "NO_COLOR=1", "CI=true",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost") // nobody listens on 9
	c, err := spend(ctx, cmd)
	if err != nil {
		return cost{}, err
	}
	for _, r := range model.Requests() {
		c.requests++
		c.sent += len(r.Body)
		var body struct {
			Tools jsontext.Value `json:"tools"`
		}
		if json.Unmarshal(r.Body, &body) == nil && len(body.Tools) > 0 && c.tools == 0 {
			c.tools, c.prompt = len(body.Tools), len(r.Body)-len(body.Tools)
		}
	}
	return c, t.judge(ctx, dir)
}
