package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/spf13/pflag"
)

// demoOptions are the options of --demo: a script takes the place of the model, in a
// temporary folder with a configuration of its own.
type demoOptions struct {
	wanted bool
	home   string // in place of $CODEX_HOME; "" before the demo begins
}

const demoFlag = "play a demo in a temporary folder: a script takes the place of the model, and needs no key and no network"

func (d *demoOptions) flag(fs *pflag.FlagSet) {
	fs.BoolVar(&d.wanted, "demo", false, demoFlag)
}

// check fails for flags whose place the demo takes.
func (d *demoOptions) check(fs *pflag.FlagSet) error {
	if !d.wanted {
		return nil
	}
	for _, name := range []string{"engine", "codex", "shared", "cd", "profile", "resume"} {
		if fs.Changed(name) {
			return fmt.Errorf("--demo has its own engine, configuration and folder; leave out --%s", name)
		}
	}
	return nil
}

// getenv returns a variable of the environment. During a demo $CODEX_HOME is the demo's.
func (o *options) getenv(name string) string {
	if name == "CODEX_HOME" && o.demo.home != "" {
		return o.demo.home
	}
	return os.Getenv(name)
}

// demonstrate calls play with the options of a demo. Afterwards it removes the demo's folder.
func demonstrate(o *options, stderr io.Writer, play func() int) (code int) {
	dir := filepath.Join(os.TempDir(), "codex-mcp-demo") // the questions name it
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) { // another demo has it
		dir, err = os.MkdirTemp("", "codex-mcp-demo")
	}
	if err != nil {
		return fail(stderr, err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			code = max(code, fail(stderr, err))
		}
	}()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fail(stderr, err)
	}
	o.demo.home, o.folder = filepath.Join(real, "home"), filepath.Join(real, "work")
	o.folders = []string{o.folder}
	for _, d := range []string{o.demo.home, o.folder} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return fail(stderr, err)
		}
	}
	if !o.ask.wanted { // a client's model would otherwise name the folder of its user
		o.overrides = append(o.overrides, `locked_arguments=["approval-policy", "config", "cwd", "model", "profile", "sandbox"]`)
	}
	o.engine = "native"
	// The flags of the user come between: they may set the policy, but not the provider.
	o.overrides = append(append([]string{
		"model=demo-script", `approval_policy="untrusted"`, `sandbox_mode="workspace-write"`,
	}, o.overrides...), "model_provider=demo", "model_providers.demo.name=demo",
		"model_providers.demo.base_url=http://demo.invalid/v1", "model_providers.demo.wire_api=responses", "shared=false")
	said := fmt.Sprintf("codex-mcp: demo: a script takes the place of the model; it works in %s, which is removed at the end", o.folder)
	if width := terminal.Width(stderr); width > 0 {
		said = strings.Join(terminal.Wrap(strings.Fields(said), " ", width-1), "\n")
	}
	fmt.Fprintln(stderr, said)
	return play()
}

// demo returns a runner that plays the demo with run.
func demo(run runner) runner {
	return func(ctx context.Context, o *options, stdout, stderr io.Writer) int {
		return demonstrate(o, stderr, func() int { return run(ctx, o, stdout, stderr) })
	}
}

// playDemo shows a turn with questions, and then a turn in the background.
func (o *options) playDemo(ctx context.Context, console *terminal.Console, signals <-chan os.Signal) int {
	task := &terminal.Task{Prompt: "Show what codex-mcp does.", Folder: o.folder, JSON: o.json, Version: version()}
	task.Arguments = o.ask.arguments(o.folder)
	if code := askOn(ctx, o, task, console, o.getenv, signals); code != terminal.StatusAnswered {
		return code
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- o.demoBackground(ctx, console) }()
	select {
	case err := <-ended:
		if err != nil {
			return fail(console.Err, err)
		}
		return terminal.StatusAnswered
	case <-signals:
		cancel()
		<-ended
		return terminal.StatusInterrupted
	}
}

// demoNext says what comes after the demo.
func demoNext(program string) string {
	next := "Next: " + program + " doctor says what a task with a real model needs."
	if _, err := exec.LookPath(program); err != nil { // as after go run
		next += "\nREADME.md says how to install " + program + "."
	}
	return next
}

// demoBackground runs a turn in the background of a server and waits for its end.
func (o *options) demoBackground(ctx context.Context, console *terminal.Console) error {
	screen := console.Err
	if console.OutTerminal && !o.json {
		screen = console.Out
	}
	say := func(format string, args ...any) { fmt.Fprintf(screen, format+"\n", args...) }
	c, err := configure(o, o.getenv, o.logger(console.Err))
	if err != nil {
		return err
	}
	e, err := choose(ctx, o, c)
	if err != nil {
		return err
	}
	return errors.Join(c.withServer(o, e, func(s *codexserver.Server) (err error) {
		cl, err := client.Start(ctx, &client.Options{Server: s, Name: "codex-mcp-demo", Version: version()})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cl.Close()) }()
		say("\nA background task: a client that must not wait gets its conversation at once.")
		began := time.Now()
		elapsed := func() time.Duration { return time.Since(began).Round(time.Millisecond) }
		r, err := cl.Background(ctx, client.Task{Prompt: demoSlowly})
		if err != nil {
			return err
		}
		say("  codex with background: true   %7v  status %s", elapsed(), r.Status)
		for {
			all, err := cl.Wait(ctx, r.Thread)
			if err != nil {
				return err
			}
			for _, r := range all {
				say("  codex-wait                    %7v  status %s: %s", elapsed(), r.Status, r.Answer)
				if r.Status != client.Running {
					say("\n%s", demoNext(o.name))
					return nil
				}
			}
		}
	}), e.Close())
}
