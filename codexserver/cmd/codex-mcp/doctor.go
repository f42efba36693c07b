package main

import (
	"bytes"
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
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
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
	read    bool              // codex-mcp.toml could be read
	// Quota is what the account of the engine has left.
	Quota *quota `json:"quota,omitempty"`

	// Checks are what is wrong, by the names of the checks that found it.
	Checks map[string]string `json:"checks,omitempty"`
	// Problem says why no turn can run, "" when turns can run.
	Problem string `json:"problem,omitempty"`
}

// check is one of the things that doctor looks at.
type check struct {
	name string
	// look fills in its part of the diagnosis, and says what is wrong.
	look func(ctx context.Context, o *options, c *configuration, d *diagnosis) error
	// remedies returns what helps when no turn can run; each of them is enough. Nil means that turns run in spite of
	// the problem, which is a warning then.
	remedies func(d *diagnosis) []string
}

// checks are all but the choice of the engine. The remedies and the warnings have their order.
var checks = []check{
	{"native", checkNative, (*diagnosis).helpNative},
	{"codex", checkCodex, (*diagnosis).helpCodex},
	{"keys", func(_ context.Context, _ *options, c *configuration, _ *diagnosis) (err error) {
		for _, key := range config.Unknown(c.home, c.overrides, true) {
			err = errors.Join(err, errors.New("unknown key: "+key))
		}
		return err
	}, nil},
	{"rules", func(_ context.Context, _ *options, c *configuration, _ *diagnosis) error {
		_, err := rulefile.New(c.home, nil).List()
		if err != nil {
			err = fmt.Errorf("%w; none of these rules counts", err)
		}
		return err
	}, nil},
	{"folder", func(_ context.Context, _ *options, c *configuration, _ *diagnosis) error {
		return safefile.Exposed(runtime.GOOS, c.home)
	}, nil},
	{"sandbox", func(_ context.Context, _ *options, _ *configuration, d *diagnosis) error {
		_, err := box.New(box.Options{}).Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, os.TempDir(), os.Environ())
		if err != nil {
			d.Sandbox, err = err.Error(), fmt.Errorf("the sandbox does not work: %w", err)
		}
		return err
	}, nil},
	{"calls", func(_ context.Context, _ *options, c *configuration, _ *diagnosis) error {
		if !c.settings.TrustedCalls {
			return nil
		}
		return errors.New("calls.trusted: the argument config of a call may set every key, and so start any program")
	}, nil},
}

// doctorOptions are the options of codex-mcp doctor.
type doctorOptions struct {
	*options
	json bool
}

// Run checks everything that the server depends on, and prints one screen of a terminal (or JSON). The
// exit status is 1 when no turn can run.
func (o *doctorOptions) Run(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	if !o.logs {
		o.log = slog.LevelError // the report has the warnings
	}
	c, err := configure(o.options, os.Getenv, o.logger(stderr))
	d := diagnose(ctx, o.options, c, err)
	var report bytes.Buffer
	if o.json {
		// Every part of it can be encoded.
		_ = json.MarshalWrite(&report, d, jsontext.WithIndent("  "), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		report.WriteByte('\n')
	} else {
		d.print(&report)
	}
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return err
	}
	if d.Problem != "" {
		return status(1)
	}
	return nil
}

// diagnose looks at everything. An error is that of the configuration.
func diagnose(ctx context.Context, o *options, c *configuration, err error) *diagnosis {
	d := &diagnosis{Version: program.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Checks: map[string]string{}}
	d.Home, _ = config.Home(os.Getenv)
	if err != nil {
		d.Configuration, d.Problem, d.Sandbox = err.Error(), err.Error(), "not checked"
		return d
	}
	d.read, d.Log = true, c.logFile()
	d.Automatic = automatic(d.Log)
	for _, check := range checks {
		if err := check.look(ctx, o, c, d); err != nil {
			d.Checks[check.name] = err.Error()
		}
	}
	e, err := choose(ctx, o, c)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	defer e.Close()
	d.Engine, d.Reason = e.name, e.reason
	if d.Problem = d.Checks[e.name]; d.Problem == "" && e.limits != nil {
		d.Quota = quotaOf(ctx, e.limits)
	}
	return d
}

func checkNative(ctx context.Context, _ *options, c *configuration, d *diagnosis) (err error) {
	if d.Native, err = native.Check(ctx, c.nativeOptions()); err != nil {
		d.Configuration = err.Error()
		return err
	}
	if missing, is := strings.CutPrefix(d.Native.Key, "missing: "); is {
		return errors.New("the model provider needs a key: " + missing)
	}
	if d.Native.Reach != "" {
		return errors.New(d.Native.Reach)
	}
	return nil
}

// helpNative returns what helps the native engine.
func (d *diagnosis) helpNative() (all []string) {
	name, missing := strings.CutPrefix(d.Native.Key, "missing: set ")
	switch {
	case missing:
		all = append(all, "set "+name+" to a key of the provider")
	case d.Native.Reach != "":
		all = append(all, "mend what the first line names")
	}
	if at, err := url.Parse(d.Native.BaseURL); err != nil || !webaddr.Loopback(at.Hostname()) {
		all = append(all, "use a model server of your own, such as Ollama: -c model_provider=oss -m NAME")
	}
	return all
}

func checkCodex(ctx context.Context, o *options, c *configuration, d *diagnosis) error {
	bridge, err := c.bridge(o.codex)
	if err != nil {
		return err
	}
	defer bridge.Close() // only its report is needed
	d.Codex = c.look(ctx, bridge, o.codex)
	return d.Codex.Err
}

// helpCodex returns what lets the installed Codex run the turns.
func (d *diagnosis) helpCodex() []string {
	switch {
	case d.Codex == nil:
		return nil
	case d.Codex.Path != "":
		return []string{"let the installed Codex run them: " + d.Codex.Problem}
	}
	return []string{"install Codex and sign in: npm i -g @openai/codex, then codex login"}
}

// quota is what the account has used.
type quota struct {
	// Unknown says why that is not known, "" when it is.
	Unknown string `json:"unknown,omitempty"`
	// RateLimits are nil if they are not known.
	*protocol.RateLimits
	words string // what is left of them now, for people
}

// quotaOf returns what the account has used. It sends no request to a model.
func quotaOf(ctx context.Context, limits func(context.Context) (*protocol.RateLimits, error)) *quota {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reported, err := limits(ctx)
	switch {
	case err != nil:
		return &quota{Unknown: err.Error()}
	case reported == nil:
		return &quota{Unknown: "no limits were reported"}
	}
	return &quota{RateLimits: reported, words: reported.Words()}
}

// automatic returns what clients answered by themselves, from the newest part of a log of approvals.
func automatic(path string) []string {
	lines, err := safefile.Read(path, 2*maxLog)
	switch {
	case path == "", errors.Is(err, fs.ErrNotExist):
		return nil // no log, or none yet
	case err != nil:
		return []string{err.Error()}
	}
	return record.Automatic(lines[max(len(lines)-1<<20, 0):], 3)
}

// print prints what a person needs: whether tasks run and with what, what is missing with all that
// can be done about it, what commands may do, and what is wrong.
func (d *diagnosis) print(w io.Writer) {
	if d.Problem == "" {
		row(w, "result", "tasks can run, with "+d.runs())
	} else {
		row(w, "result", "no task can run: "+d.Problem)
		row(w, "to do", d.remedies()...)
	}
	if d.Native != nil && d.Engine == "native" {
		row(w, "commands", d.commands())
	}
	row(w, "warning", d.warnings()...)
	if d.read {
		recorded := "are recorded in " + d.Log
		if d.Log == "" {
			recorded = "are not recorded (approvals.log)"
		}
		row(w, "approvals", append([]string{recorded}, d.Automatic...)...)
		row(w, "conversations", "are kept in "+filepath.Join(d.Home, "sessions"))
		row(w, "log", "goes to standard error, which a client keeps in its own logs; --log debug has more")
	}
	if d.Quota != nil {
		row(w, "quota", d.Quota.words)
	}
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
	switch n := d.Native; {
	case d.Engine == "native" && n == nil:
		return "the native engine"
	case d.Engine == "native":
		return fmt.Sprintf("the native engine: model %q of provider %q at %s", n.Model, n.Provider, n.BaseURL)
	}
	text := "the installed Codex"
	if c := d.Codex; c != nil {
		if text += " " + c.Version; c.Account != nil && c.Account.Method != "" {
			text += ", signed in by " + string(c.Account.Method)
		}
	}
	return text
}

// remedies returns what a person can do so that tasks run. One of them is enough.
func (d *diagnosis) remedies() (all []string) {
	if d.Engine == "codex" || d.Native == nil {
		return []string{"correct that; codex-mcp ask --demo shows how it works meanwhile"}
	}
	for _, check := range checks {
		if check.remedies != nil {
			all = append(all, check.remedies(d)...)
		}
	}
	all = append(all, "see it work without any of these: codex-mcp ask --demo")
	for i := range all[1:] {
		all[i+1] = "or " + all[i+1]
	}
	return all
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
		may = "no sandbox works, and nobody is asked, so no command runs"
	case d.Sandbox != "":
		may = "no sandbox works, so you are asked about every command"
	case n.Sandbox == protocol.SandboxWorkspaceWrite:
		temporary, network := " and, for temporary files, in "+strings.Join(n.Temporary, " and "), "no network"
		if len(n.Temporary) == 0 {
			temporary = " (nowhere for temporary files: the folders for them are excluded, or hold your home or $CODEX_HOME)"
		}
		if n.Network {
			network = "the network"
		}
		may = "run in a sandbox that reads your files, writes in the folder of the task" + temporary + ", and has " + network + "; " + asked
	default:
		may = "run in a sandbox that reads your files, writes nothing and has no network; " + asked
	}
	return fmt.Sprintf("%s (sandbox_mode %s, approval_policy %s)", may, n.Sandbox, n.Policy)
}

// warnings returns what is wrong although tasks may run.
func (d *diagnosis) warnings() (all []string) {
	if d.Configuration != d.Problem {
		all = append(all, d.Configuration)
	}
	for _, check := range checks {
		if check.remedies == nil {
			all = append(all, strings.Split(d.Checks[check.name], "\n")...)
		}
	}
	return all
}
