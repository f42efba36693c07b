package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// diagnosis is the report of codex-mcp doctor.
type diagnosis struct {
	Version string `json:"version"`
	System  string `json:"system"`
	Home    string `json:"codexHome"`
	// Configuration says what is wrong with the configuration, "" when nothing is.
	Configuration string `json:"configuration,omitempty"`
	// Log is the path of the log of approvals, "" if there is none.
	Log string `json:"approvalsLog"`
	// Automatic is what clients answered by themselves, by the newest part of that log.
	Automatic []string `json:"automatic,omitempty"`

	Engine string `json:"engine,omitempty"`
	Reason string `json:"reason,omitempty"`

	Codex   *appserver.Report `json:"codex,omitempty"`
	Native  *native.Report    `json:"native,omitempty"`
	Sandbox string            `json:"sandbox"` // "" or why it confines no command
	network string            // what commands in workspace-write have of it unless sandbox_workspace_write gives all
	warned  []string          // by the checks that only warn
	// Quota is what the account of the engine has left, [protocol.RateLimits], or why that is unknown.
	Quota any    `json:"quota,omitempty"`
	left  string // of it, for people

	// Checks are what is wrong, by the names of the checks that found it.
	Checks map[string]string `json:"checks,omitempty"`
	// Problem says why no turn can run, "" when turns can run.
	Problem string `json:"problem,omitempty"`
	wrong   bool   // a -c is wrong
	// Broken is what is configured and does not hold although turns can run, with what helps.
	Broken []string `json:"broken,omitempty"`
}

// effect is what it means when a check finds something.
type effect int

const (
	warns  effect = iota // turns run, as configured
	breaks               // turns run, and something that is configured does not hold
	stops                // no turn runs
)

// exam is what a check looks at, and what it finds.
type exam struct {
	context.Context
	o   *doctorOptions
	c   *configuration
	cfg *config.Config // empty if it cannot be read, which the check native says
	d   *diagnosis
}

// check is one of the things that doctor looks at.
type check struct {
	name   string // that of an engine counts for that engine
	effect effect
	look   func(*exam) error // fills in its part of the diagnosis, and says what is wrong; all look at the same time
	help   string            // what follows from it and what helps, "" if the error says it
}

// checks are all but the choice of the engine, in the order in which they are said.
var checks = []check{
	{"native", stops, checkNative, ""},
	{"codex", stops, checkCodex, ""},
	{"keys", warns, func(x *exam) (err error) {
		for _, key := range config.Unknown(x.c.home, x.c.overrides, true) {
			err = errors.Join(err, errors.New("unknown key: "+key))
		}
		return err
	}, ""},
	{"rules", breaks, func(x *exam) error {
		_, err := rulefile.New(x.c.home, nil).List()
		return err
	}, "none of these rules counts; correct the file, or remove it and accept them again"},
	{"namespaces", warns, func(x *exam) error {
		if runtime.GOOS != "linux" || box.Available() != nil || len(x.c.settings.Sandbox.Helper) > 0 {
			return nil
		}
		return box.RoomsAvailable()
	}, ""},
	{"hosts", breaks, checkHosts, "they have no network, as without approvals.hosts"},
	{"folder", warns, func(x *exam) error { return x.c.exposed() }, ""},
	{"calls", warns, func(x *exam) error {
		if !x.c.settings.TrustedCalls {
			return nil
		}
		return errors.New("calls.trusted: the argument config of a call may set every key, and so start any program")
	}, ""},
	{"cd", stops, func(x *exam) error {
		_, err := existingFolder(x.o.folder)
		return err
	}, ""},
	{"conversations", stops, func(x *exam) error { return writable(filepath.Join(x.c.home, "sessions")) },
		"no conversation can be kept there; make room, or correct CODEX_HOME or the rights of that folder"},
	{"approvals", breaks, func(x *exam) error {
		if x.c.settings.Approvals.Log != nil {
			return nil // diagnose opens it
		}
		return writable(filepath.Dir(x.c.logFile()))
	}, "no approval counts, because none can be recorded; make room, or correct the rights of that folder"},
	{"page", warns, portTaken, "a server that runs may have it, as it should; the next page takes a free port, and " +
		"says so"},
	{"notify", breaks, func(x *exam) error {
		return errors.Join(notifies("notify.command", x.c.settings.Notify), notifies("notify", x.cfg.Notify))
	}, ""},
}

// writable returns why what a turn writes cannot be written to a folder, or to the one above it where it will be made.
func writable(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		return writable(filepath.Dir(dir))
	}
	room := safefile.NewReserve(dir, changes.TurnRoom)
	err := room.Check()
	if err == nil {
		return room.Release()
	}
	if of, is := errors.AsType[*fs.PathError](err); is {
		err = of.Err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// checkHosts looks whether commands can ask for hosts.
func checkHosts(x *exam) error {
	err := box.HostsAvailable()
	if len(x.c.settings.Sandbox.Helper) > 0 {
		err = errors.New("sandbox.helper has no network by the host")
	}
	x.d.network = "no network"
	switch on := x.c.settings.Approvals.AskHosts(); {
	case err != nil && on:
		return fmt.Errorf("approvals.hosts: commands cannot ask for hosts: %w", err)
	case on:
		x.d.network += " but each host that you allow"
	case err == nil:
		x.d.network += ` (approvals.hosts = "ask" asks about each host)`
	}
	return nil
}

// notifies looks for the program of a key.
func notifies(key string, argv []string) (err error) {
	if len(argv) > 0 {
		_, _, _, err = notifyProgram(&box.Programs{}, argv[0])
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; install it or correct the key", key, err)
	}
	return err
}

// doctorOptions are the options of codex-mcp doctor.
type doctorOptions struct {
	*options
	json, start bool
}

// Run checks everything that the server depends on, and prints one screen of a terminal (or JSON). The
// exit status is 1 when no turn can run, or something that is configured does not hold, and 2 when the command line is wrong.
func (o *doctorOptions) Run(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	if !o.logs {
		o.log = slog.LevelError // the report has the warnings
	}
	c, err := configure(o.options, os.Getenv, o.logger(stderr))
	d := diagnose(ctx, o, c, err)
	var report bytes.Buffer
	if o.json {
		// Every part of it can be encoded.
		_ = json.MarshalWrite(&report, d, jsontext.WithIndent("  "), json.Deterministic(true),
			jsontext.AllowInvalidUTF8(true))
		report.WriteByte('\n')
	} else {
		d.print(&report)
	}
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return err
	}
	switch {
	case d.wrong && d.Problem != "":
		return status(statusWrong)
	case d.Problem != "" || len(d.Broken) > 0:
		return status(1)
	}
	return nil
}

// doctorTime bounds all checks.
const doctorTime = 10 * time.Second

// diagnose looks at everything. An error is that of the configuration.
func diagnose(ctx context.Context, o *doctorOptions, c *configuration, err error) *diagnosis {
	d := &diagnosis{Version: program.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	d.Home, _ = config.Home(os.Getenv)
	if err != nil {
		d.Configuration, d.Problem, d.Sandbox, d.wrong = err.Error(), err.Error(), "not checked", wrongLine(err)
		return d
	}
	ctx, stop := context.WithTimeout(ctx, doctorTime)
	defer stop()
	d.Checks, d.Log = map[string]string{}, c.logFile()
	lines, _ := safefile.Read(d.Log, 2*maxLog) // there may be no log
	d.Automatic = record.Automatic(lines[max(len(lines)-1<<20, 0):], 3)
	cfg, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides})
	if err != nil {
		cfg = &config.Config{}
	}
	found := make([]error, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { found[i] = check.look(&exam{ctx, o, c, cfg, d}) })
	}
	e, err := choose(ctx, o.options, c)
	all.Wait()
	if err == nil {
		defer e.Close()
		d.Engine, d.Reason = e.name, e.reason
		end, failed := c.openLogs(o.options, e.name)
		end()
		if err = failed; err != nil {
			d.Checks["log"] = err.Error()
		}
	}
	d.wrong = wrongLine(errors.Join(append(found, err)...))
	if err != nil {
		d.Problem = err.Error()
	}
	for i, one := range checks {
		if found[i] == nil {
			continue
		}
		said := found[i].Error()
		if one.help != "" {
			said += ": " + one.help
		}
		d.Checks[one.name] = said
		switch {
		case slices.Contains(engines, one.name) && one.name != d.Engine:
		case one.effect == stops:
			d.Problem = cmp.Or(d.Problem, said)
		case one.effect == breaks:
			d.Broken = append(d.Broken, strings.Split(said, "\n")...)
		default:
			d.warned = append(d.warned, strings.Split(said, "\n")...)
		}
	}
	if d.Engine == "native" && d.Native != nil {
		d.Broken = append(d.Broken, d.Native.Broken...)
	}
	if d.Engine == "codex" && d.Problem == "" && d.Codex != nil && d.Codex.Unconfined != "" {
		d.Broken = append(d.Broken, d.Codex.Unconfined+"; "+appserver.OnlyOutside)
	}
	if d.Problem == "" && d.Engine == "codex" {
		if limits, err := e.Engine.(*appserver.Engine).RateLimits(ctx); err == nil && limits != nil {
			d.Quota, d.left = limits, limits.Words()
		} else {
			d.Quota = map[string]string{"unknown": cmp.Or(err, errors.New("no limits were reported")).Error()}
		}
	}
	return d
}

func checkNative(x *exam) (err error) {
	d := x.d
	if d.Native, err = native.Check(x, x.c.nativeOptions(), x.o.start); err != nil {
		d.Configuration = err.Error()
		return err
	}
	if d.Sandbox = d.Native.Unconfined; d.Native.Reach != "" {
		return errors.New(d.Native.Reach)
	}
	return nil
}

func checkCodex(x *exam) error {
	bridge, err := x.c.bridge(x.o.codex)
	if err != nil {
		return err
	}
	defer bridge.Close() // only its report is needed
	x.d.Codex = bridge.Check(x)
	if err := x.d.Codex.Err; err != nil || x.o.engine == "native" {
		return err
	}
	if err := checkCodexSandbox(x, bridge); err != nil {
		return err
	}
	return native.Reach(x, codexAddress(x.cfg, x.d.Codex), os.Getenv)
}

// checkCodexSandbox has Codex run a command in its sandbox, unless it needs none. It is an error if nobody could let
// one out of it.
func checkCodexSandbox(x *exam, bridge *appserver.Engine) error {
	r := x.d.Codex
	if r.Sandbox == string(protocol.SandboxDangerFullAccess) {
		return nil
	}
	failed, is := errors.AsType[*appserver.UnconfinedError](bridge.Confines(x))
	if !is {
		return nil
	}
	if r.Unconfined = failed.Error(); r.ApprovalPolicy == string(protocol.ApprovalNever) {
		return fmt.Errorf("nobody is asked (approval_policy never), and %w", failed)
	}
	return nil
}

// codexAddress returns the address to which Codex sends its requests, "" if it is not known.
func codexAddress(cfg *config.Config, r *appserver.Report) string {
	switch {
	case r.Provider != "" && r.Provider != "openai":
		return cfg.ModelProviders[r.Provider].BaseURL
	case cfg.OpenAIBaseURL != "":
		return cfg.OpenAIBaseURL
	case r.Account.Method == protocol.AuthChatGPT:
		return "https://chatgpt.com/backend-api/codex"
	}
	return "https://api.openai.com/v1"
}

// print prints what a person needs: whether tasks run and with what, what is missing with all that
// can be done about it, what commands may do, and what is wrong.
func (d *diagnosis) print(w io.Writer) {
	switch {
	case d.Problem != "":
		row(w, "result", "no task can run: "+d.Problem)
		row(w, "to do", d.remedies()...)
		row(w, "and also", d.Broken...)
	case len(d.Broken) > 0:
		row(w, "result", "tasks can run, but not all that is configured holds, with "+d.runs())
		row(w, "to do", d.Broken...)
	default:
		row(w, "result", "tasks can run, with "+d.runs())
	}
	if d.Native != nil && d.Engine == "native" {
		row(w, "commands", d.commands())
		row(w, "may read", d.Native.Reads)
		row(w, "may write", d.Native.Writes)
		row(w, "may reach", d.Native.Reaches)
	}
	row(w, "warning", append([]string{strings.TrimPrefix(d.Configuration, d.Problem)}, d.warned...)...)
	if d.Checks != nil { // codex-mcp.toml could be read
		recorded := "are recorded in " + d.Log
		if d.Log == "" {
			recorded = "are not recorded (approvals.log)"
		}
		row(w, "approvals", append([]string{recorded}, d.Automatic...)...)
		row(w, "conversations", "are kept in "+filepath.Join(d.Home, "sessions"))
		row(w, "log", "goes to standard error, which a client keeps in its own logs; --log debug has more")
	}
	row(w, "quota", d.left)
	row(w, "more", "codex-mcp doctor --json has each check")
}

// row prints the texts that are not empty, each as one line, the first with the name.
func row(w io.Writer, name string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			fmt.Fprintf(w, "%-15s%s\n", name, terminal.Row(text))
			name = ""
		}
	}
}

// runs says what a task runs with.
func (d *diagnosis) runs() string {
	if n := d.Native; d.Engine == "native" {
		return fmt.Sprintf("the native engine: model %q of provider %q at %s", n.Model, n.Provider, n.BaseURL)
	}
	text := "the installed Codex " + d.Codex.Version
	if account := d.Codex.Account; account != nil && account.Method != "" {
		text += ", signed in by " + string(account.Method)
	}
	return text
}

// remedies returns what a person can do so that tasks run. One of them is enough.
func (d *diagnosis) remedies() []string {
	n := d.Native
	if d.Engine == "codex" || n == nil || d.Problem != d.Checks["native"] {
		return []string{"correct that; codex-mcp ask --demo shows how it works meanwhile"}
	}
	all := []string{"mend what the first line names"}
	if name, missing := strings.CutPrefix(n.Key, "missing: set "); missing {
		all[0] = "set " + name + " to a key of the provider"
	}
	if at, err := url.Parse(n.BaseURL); err != nil || !webaddr.Loopback(at.Hostname()) {
		all = append(all, "or use a model server of your own, such as Ollama: -c model_provider=oss -m NAME")
	}
	if d.Codex != nil && d.Codex.Path != "" {
		all = append(all, "or let the installed Codex run them: "+cmp.Or(d.Codex.Problem, "leave out --engine native"))
	} else if d.Codex != nil {
		all = append(all, "or install Codex and sign in: npm i -g @openai/codex, then codex login")
	}
	return append(all, "or see it work without any of these: codex-mcp ask --demo")
}

// commands says what commands of a task may do without a question.
func (d *diagnosis) commands() string {
	n := d.Native
	asked := map[protocol.ApprovalPolicy]string{
		protocol.ApprovalUntrusted: "you are asked before any command that is not known to be harmless",
		protocol.ApprovalOnFailure: "you are asked about a command that the sandbox stopped",
		protocol.ApprovalOnRequest: "you are asked about what needs more",
		protocol.ApprovalNever:     "you are never asked",
	}[n.Policy]
	may := ""
	switch full := n.Sandbox == protocol.SandboxDangerFullAccess; {
	case full && n.Policy == protocol.ApprovalUntrusted:
		may = "no sandbox confines a command; " + asked
	case full:
		may = "commands run without a sandbox and without a question"
	case d.Sandbox != "" && n.Policy == protocol.ApprovalNever:
		may = "no sandbox works, and nobody is asked, so no command runs: " + d.Sandbox
	case d.Sandbox != "":
		may = "no sandbox works, so you are asked about every command: " + d.Sandbox
	case n.Writes != "": // the profile says it
		may = "run in a sandbox; " + asked
	case n.Sandbox == protocol.SandboxWorkspaceWrite:
		temporary, network := " and, for temporary files, in "+strings.Join(n.Temporary, " and "), d.network
		if len(n.Temporary) == 0 {
			temporary = " (nowhere for temporary files: the folders for them are excluded, or hold your home or " +
				"$CODEX_HOME)"
		}
		if n.Network {
			network = "the network"
		}
		may = "run in a sandbox that reads your files, writes in the folder of the task" + temporary + ", and has " +
			network + "; " + asked
	default:
		may = "run in a sandbox that reads your files, writes nothing and has no network; " + asked
	}
	return fmt.Sprintf("%s (sandbox_mode %s, approval_policy %s)", may, n.Sandbox, n.Policy)
}
